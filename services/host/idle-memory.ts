import { Script } from "node:vm";

/**
 * Milliseconds between two scripts. V8 halves what it has seen every 100 ms, so that it has forgotten the smallest script after 107 s:
 * half of that, so that a timer may be late.
 */
const everyMs = 50_000;

/**
 * Lets V8 give memory back while nothing is asked for. Some seconds after a load it collects what that left and frees the pages that it
 * kept for more, but only where the rates of three kinds of allocations are low. The third kind is objects of Node's own C++ code, of
 * which a process of ours makes none, and V8 13.6, of Node 24, takes a rate of exactly nothing for the highest: it would keep the pages of
 * its largest load until 100 s after its last collection, and longer where each small load brings another. Compiling a script makes one
 * such object.
 */
export function letIdleMemoryGo(): Disposable {
  const compile = () => void new Script("0");
  compile();
  const timer = setInterval(compile, everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
