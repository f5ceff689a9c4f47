import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import { FullScreen, type ScreenProcess } from './run-tui.js';

function fakeProcess() {
  let written = '';
  const setRawMode = vi.fn();
  const self = Object.assign(new EventEmitter(), {
    stdout: { write: (text: string) => (written += text) },
    stdin: { isTTY: true, setRawMode },
    exit: vi.fn((code: number) => void self.emit('exit', code)),
  });
  return { self, screen: new FullScreen(self as unknown as ScreenProcess), setRawMode, text };

  function text(): string {
    const all = written;
    written = '';
    return all;
  }
}

const left = '\u001B[?25h\u001B[?1049l';

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('full screen: %s restores the terminal and exits with %i', (signal, code) => {
  const { self, screen, setRawMode, text } = fakeProcess();
  screen.enter();
  expect(text()).toContain('\u001B[?1049h');
  self.emit(signal);
  expect(self.exit).toHaveBeenCalledWith(code);
  expect(text()).toBe(left);
  expect(setRawMode).toHaveBeenCalledWith(false);
});

test('full screen: is left once, and leaves no listener behind', () => {
  const { self, screen, text } = fakeProcess();
  screen.enter();
  screen.close();
  text();
  self.emit('exit');
  expect(text()).toBe('');
  expect(self.eventNames()).toEqual([]);
});
