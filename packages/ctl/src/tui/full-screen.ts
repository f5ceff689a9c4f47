/** The part of `process` used here. */
export interface ScreenProcess {
  readonly stdout: { write(text: string): unknown };
  readonly stdin: {
    isTTY?: boolean;
    setRawMode?(isRaw: boolean): unknown;
    resume?(): unknown;
    pause?(): unknown;
  };
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  exit(code: number): never;
}

const enterSequence = '\u001B[?1049h\u001B[2J\u001B[H\u001B[?25l';
const leaveSequence = '\u001B[?25h\u001B[?1049l';
const endings = { SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * The alternate screen. Whatever ends the process short of SIGKILL gives the terminal back: its
 * screen, its cursor and its line editing.
 */
export class FullScreen {
  #isOpen = false;
  readonly #listeners: [event: string, listener: () => void][];

  constructor(private readonly self: ScreenProcess) {
    const onSignal = Object.entries(endings).map(([signal, code]): [string, () => void] => [
      signal,
      // The exit event restores the terminal.
      () => self.exit(code),
    ]);
    // Also emitted after an uncaught error, before Node prints it.
    this.#listeners = [['exit', () => this.leave()], ...onSignal];
    for (const [event, listener] of this.#listeners) self.on(event, listener);
  }

  enter(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.self.stdout.write(enterSequence);
  }

  leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { stdin, stdout } = this.self;
    if (stdin.isTTY === true) stdin.setRawMode?.(false);
    // Keys now belong to another program. Only a stream that was resumed stops reading on pause.
    stdin.resume?.();
    stdin.pause?.();
    stdout.write(leaveSequence);
  }

  close(): void {
    this.leave();
    for (const [event, listener] of this.#listeners) this.self.off(event, listener);
  }
}
