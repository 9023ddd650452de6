import { Script } from "node:vm";

/**
 * Milliseconds between two scripts. V8 halves its rates every 100 ms, so it has forgotten the smallest script after 107 s. This is half
 * of that, so that a timer may be late.
 */
const everyMs = 50_000;

/**
 * Lets V8 give memory back while the process has no requests. Some seconds after a load V8 collects the garbage and frees pages that it
 * kept, but only where the rates of three kinds of allocations are low. The third kind is objects of Node's own C++ code, which our
 * processes do not make. V8 13.6, of Node 24, takes a rate of exactly zero for the highest. It would keep the pages of its largest load
 * until 100 s after its last collection. It would keep them longer where each small load brings another collection. Compiling a script
 * makes one such object.
 */
export function letIdleMemoryGo(): Disposable {
  const compile = () => void new Script("0");
  compile();
  const timer = setInterval(compile, everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
