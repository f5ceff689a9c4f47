/** What a handler learns of its task. */
export interface TaskInfo {
  readonly id: string;
  readonly queue: string;
  readonly handlerRef: string;
  /** From 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly redriveCount: number;
  readonly headers: Readonly<Record<string, string>>;
}
