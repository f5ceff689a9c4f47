import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { takeOverProcess } from './lifecycle.js';

/** A process that writes its exits down instead of ending. */
class FakeProcess extends EventEmitter {
  readonly stdout = new EventEmitter();
  readonly stderr = new EventEmitter();
  readonly exits: unknown[] = [];
  exitCode?: number;
  connected?: boolean;

  exit(code: number | string): never {
    this.exits.push(code);
    throw new Error('exit');
  }

  /** Delivers what the system would; a real exit does not come back either. */
  deliver(emitter: EventEmitter, event: string, ...args: unknown[]): void {
    try {
      emitter.emit(event, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message === 'exit')) throw error;
    }
  }
}

const brokenPipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });

test('Ctrl-C aborts what the command waits for and exits with 130', () => {
  const self = new FakeProcess();
  const { interrupted } = takeOverProcess(self);
  self.deliver(self, 'SIGINT');
  expect(interrupted.aborted).toBe(true);
  expect(self.exits).toEqual([130]);
});

test('Ctrl-C waits for the last work of the command, a second one does not', async () => {
  const self = new FakeProcess();
  const { onInterrupt } = takeOverProcess(self);
  onInterrupt(() => new Promise<never>(() => undefined));
  self.deliver(self, 'SIGINT');
  expect(self.exits).toEqual([]);
  self.deliver(self, 'SIGINT');
  expect(self.exits).toEqual([130]);
  const done = new FakeProcess();
  // The exit of a fake process throws, which nobody awaits here.
  done.exit = ((code: number) => done.exits.push(code)) as never;
  takeOverProcess(done).onInterrupt(async () => undefined);
  done.deliver(done, 'SIGINT');
  await expect.poll(() => done.exits).toEqual([130]);
  const taken = new FakeProcess();
  takeOverProcess(taken).onInterrupt(async () => undefined)();
  taken.deliver(taken, 'SIGINT');
  expect(taken.exits).toEqual([130]);
});

test('Ctrl-C on a terminal gives the prompt a line of its own', () => {
  const self = new FakeProcess();
  let written = '';
  const screen = { isTTY: true, write: (text: string) => (written += text) };
  Object.assign(self.stderr, screen);
  takeOverProcess(self);
  self.deliver(self, 'SIGINT');
  expect(written).toBe('\n');
});

test('a program that has the terminal handles Ctrl-C itself', async () => {
  const self = new FakeProcess();
  const { handOver } = takeOverProcess(self);
  expect(await handOver(async () => (self.deliver(self, 'SIGINT'), 'done'))).toBe('done');
  expect(self.exits).toEqual([]);
  self.deliver(self, 'SIGINT');
  expect(self.exits).toEqual([130]);
});

test('a broken pipe ends a command with the code it has so far, and never a server', async () => {
  const self = new FakeProcess();
  const { serve } = takeOverProcess(self);
  self.exitCode = 1;
  self.deliver(self.stdout, 'error', brokenPipe);
  expect(self.exits).toEqual([1]);
  await serve(async () => self.deliver(self.stdout, 'error', brokenPipe));
  expect(self.exits).toEqual([1]);
});

test('other trouble with stdout is not hidden', () => {
  const self = new FakeProcess();
  takeOverProcess(self);
  const full = Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' });
  expect(() => self.stdout.emit('error', full)).toThrow('ENOSPC');
});

test('a server hears the first signal and is cut short by the second', async () => {
  const self = new FakeProcess();
  const { serve } = takeOverProcess(self);
  await serve(async (stopped) => {
    self.deliver(self, 'SIGTERM');
    await stopped;
    expect(self.exits).toEqual([]);
    self.deliver(self, 'SIGINT');
    expect(self.exits).toEqual([130]);
  });
});

test('a server whose supervisor is gone stops as by a first signal', async () => {
  const self = new FakeProcess();
  self.connected = true;
  const { serve } = takeOverProcess(self);
  await serve(async (stopped) => {
    self.deliver(self, 'disconnect');
    await stopped;
    self.deliver(self, 'SIGTERM');
    expect(self.exits).toEqual([]);
  });
});

test('a supervisor that was gone before the server began stops it too', async () => {
  const self = new FakeProcess();
  self.connected = false;
  await takeOverProcess(self).serve((stopped) => stopped);
  expect(self.exits).toEqual([]);
});
