// Goes on with a value that may be there already. The path of a text request saves promises by it.

/** A value, or a promise of it where something must be waited for. A promise costs more than most steps of a request. */
export type Awaitable<T> = T | Promise<T>;

/** `next` of a value: at once where the value is there, or else once it has come. */
export function after<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** A promise of what `work` answers or throws. A promise that it answers is taken as it is. */
export function promiseOf<A extends unknown[], T>(
  work: (...given: A) => Awaitable<T>,
  ...given: A
): Promise<T> {
  try {
    return Promise.resolve(work(...given));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The result of `work`, or that of `failed` where it throws or rejects. */
export function orElse<T>(
  work: () => Awaitable<T>,
  failed: (error: unknown) => Awaitable<T>,
): Awaitable<T> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(failed) : result;
  } catch (error) {
    return failed(error);
  }
}
