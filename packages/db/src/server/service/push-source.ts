/** A stream that can push messages to a sink while its reader waits. */
export interface PushSource<Answer> {
  pushTo(sink: PushSink<Answer>): void;
}

export interface PushSink<Answer> {
  /** False: the sink accepts nothing now; messages go to the reader, which waits for room. */
  hasRoom(): boolean;
  /** Consecutive messages. The array is shared between streams; do not modify it. */
  take(answers: readonly Answer[]): void;
}
