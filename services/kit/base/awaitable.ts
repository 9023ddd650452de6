// Goes on with a value that may be there already. The path of a text request saves promises by it.

/** A value, or a promise of it where something must be waited for. A promise costs more than most steps of a request. */
export type Awaitable<T> = T | Promise<T>;

/** `next` of a value: at once where the value is there, or else once it has come. */
export function after<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
