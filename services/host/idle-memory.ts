import { Script } from "node:vm";

/**
 * Milliseconds between two scripts. V8 halves what it has seen every 100 ms, so that it has forgotten the smallest script after 107 s:
 * half of that, so that a timer may be late.
 */
const everyMs = 50_000;

/**
 * Has V8 give back memory while nothing is asked for, as it means to: some seconds after a load it collects what that left, and frees
 * the pages that it kept for more. It begins once little is allocated of each of three kinds; the third is objects of the machine code
 * around it, and where none at all was made V8 of Node 24 (13.6) takes the rate for the highest. A process of ours makes none, so it
 * would keep all pages of its largest load for as long as it stands still. Compiling a script makes one such object.
 */
export function letIdleMemoryGo(): Disposable {
  const compile = () => void new Script("0");
  compile();
  const timer = setInterval(compile, everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
