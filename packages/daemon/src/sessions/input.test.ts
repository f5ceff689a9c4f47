import { systemClock } from '@millrace/kit/clock';
import { describe, expect, test } from 'vitest';
import { readDialog } from './evidence/dialog.js';
import type { TalkingDriver } from './drivers/driver.js';
import { Conversation } from './input.js';

/** The dialog of gemini 0.61.0. */
const dialog = [
  '╭──────────────────────────────────────────────────────╮',
  '│ ? Shell  touch x.txt                                 │',
  '│ Allow execution of [Shell]?                          │',
  '│                                                      │',
  '│ ● 1. Allow once                                      │',
  '│   2. Allow for this session                          │',
  '│   3. No, suggest changes (esc)                       │',
  '╰──────────────────────────────────────────────────────╯',
].join('\n');

const idle = ' >   Type your message or @path/to/file\n';

/** An agent whose dialog goes away some time after Enter, on a clock of its own. */
function slowAgent(takesMs: number) {
  let now = 0;
  let enterAt = Infinity;
  const pressed: string[] = [];
  const clock = {
    ...systemClock,
    monotonic: () => now,
    sleep: async (ms: number) => void (now += ms),
  };
  const driver = {
    screen: async () => (now - enterAt >= takesMs ? idle : dialog),
    type: async (_id: string, text: string) => void pressed.push(text),
    press: async (_id: string, key: string) => {
      pressed.push(key);
      enterAt = now;
    },
  } as unknown as TalkingDriver;
  return { conversation: new Conversation({ clock, driver }), pressed };
}

describe('conversation: choose', () => {
  const content = readDialog('gemini', dialog)!;

  test('a choice that shows only seconds after Enter is taken', async () => {
    const { conversation, pressed } = slowAgent(6_000);
    expect(await conversation.choose('a', 'gemini', content, '1')).toBe('taken');
    expect(pressed).toEqual(['1', 'Enter']);
  });

  test('a dialog that stays is stuck', async () => {
    const { conversation } = slowAgent(60_000);
    expect(await conversation.choose('a', 'gemini', content, '1')).toBe('stuck');
  });

  test('Enter does not confirm another option than the requested one', async () => {
    const { conversation, pressed } = slowAgent(0);
    expect(await conversation.choose('a', 'gemini', content, '2')).toBe('stuck');
    expect(pressed).toEqual(['2']);
  });
});
