/** A stream that hands over what it has, while its reader waits for what is not handed over. */
export interface Pushing<Answer> {
  pushTo(sink: PushSink<Answer>): void;
}

export interface PushSink<Answer> {
  /** False: it takes nothing now. What there is goes to the reader, who waits for room. */
  hasRoom(): boolean;
  /** Messages in a row. Streams that show the same are given the same array: do not change it. */
  take(answers: readonly Answer[]): void;
}
