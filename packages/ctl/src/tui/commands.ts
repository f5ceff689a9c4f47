import type { Actions, PreviewMode } from './actions.js';
import type { Snapshot } from './live-data.js';
import { confirmation, textPrompt, type Prompt } from './prompts.js';
import type { Tab } from './views.js';

/** What a key does: run at once, ask first, or hand over the terminal. */
export type Effect =
  | { readonly run: () => Promise<string> }
  | { readonly prompt: Prompt }
  | { readonly attach: string }
  | { readonly preview: PreviewMode };

interface KeyCommand {
  readonly key: string;
  readonly label: string;
  effect(id: string, actions: Actions, snapshot: Snapshot): Effect;
}

function key(name: string, label: string, effect: KeyCommand['effect']): KeyCommand {
  return { key: name, label, effect };
}

/** Keys of each tab that act on the selected row. */
export const keysOf: Readonly<Record<Tab, readonly KeyCommand[]>> = {
  Fleet: [
    key('return', 'attach', (id, actions) => ({ attach: actions.attachable(id) })),
    key('d', 'diff', () => ({ preview: 'diff' })),
    key('l', 'logs', () => ({ preview: 'logs' })),
    key('a', 'answer', answerAgent),
    key('s', 'send', (id, actions) => ({
      prompt: textPrompt('Send to the agent', (text) => actions.send(id, text)),
    })),
    key('m', 'merge', (id, actions) => ({
      prompt: confirmation('Merge the branch of this agent into its base?', () =>
        actions.merge(id),
      ),
    })),
    key('v', 'serve', (id, actions) => ({ run: () => actions.serve(id) })),
    key('k', 'stop', (id, actions) => ({
      prompt: confirmation('Stop this agent?', () => actions.stop(id)),
    })),
  ],
  Questions: [
    key('return', 'answer', answerEffect),
    key('a', 'attach', (id, actions, snapshot) => ({
      attach: actions.attachable(questionOf(id, snapshot).session_id),
    })),
  ],
  Queues: [
    key('p', 'pause/resume', (name, actions) => ({ run: () => actions.togglePause(name) })),
    key('r', 'redrive', redriveEffect),
  ],
  Backends: [
    key('e', 'enable/disable', (id, actions) => ({ run: () => actions.toggleBackend(id) })),
    key('d', 'make default', (id, actions) => ({ run: () => actions.makeDefault(id) })),
  ],
  Spend: [],
  Inbox: [
    key('return', 'mark read', (id, actions) => ({ run: () => actions.markRead([id]) })),
    key('A', 'mark all read', (_id, actions, { data }) => {
      const unread = (data.notes ?? []).filter(({ read }) => !read).map(({ id }) => id);
      return { run: () => actions.markRead(unread) };
    }),
  ],
};

/** The first open question of an agent. */
function answerAgent(id: string, actions: Actions, snapshot: Snapshot): Effect {
  const question = snapshot.data.questions?.find(({ session_id: session }) => session === id);
  if (!question) return { run: () => Promise.resolve('This agent asks nothing.') };
  return answerEffect(question.id, actions, snapshot);
}

function questionOf(id: string, { data }: Snapshot) {
  const question = data.questions?.find((each) => each.id === id);
  if (!question) throw new Error('the question has just been answered');
  return question;
}

function answerEffect(id: string, actions: Actions, snapshot: Snapshot): Effect {
  const { options, title } = questionOf(id, snapshot);
  if (options.length > 0 && options.length < 10) {
    return {
      prompt: {
        kind: 'choice',
        label: title,
        options: options.map(({ label }) => label),
        pick: (at) => actions.answer(id, { option_id: options[at]!.id }),
      },
    };
  }
  return { prompt: textPrompt('Answer', (text) => actions.answer(id, { text })) };
}

function redriveEffect(name: string, actions: Actions): Effect {
  const count = actions.deadIn(name);
  if (count === 0) return { run: () => Promise.resolve(`${name} has no dead tasks.`) };
  const label = `Run ${count} dead ${count === 1 ? 'task' : 'tasks'} of ${name} again?`;
  return { prompt: confirmation(label, () => actions.redrive(name)) };
}

const keyNames: Readonly<Record<string, string>> = { return: 'Enter' };

/** The keys at the bottom of a tab; of those of the fleet, as many as fit beside `? help`. */
export function keyHelp(tab: Tab, columns: number): string {
  const own = keysOf[tab].map(({ key, label }) => `${keyNames[key] ?? key} ${label}`);
  if (tab !== 'Fleet') {
    return [...own, '1-6 Tab switch', '↑↓ select', 'R refresh', '? help', 'q quit'].join('  ');
  }
  const all = ['n new', ...own, '/ filter', '? help', 'q quit'];
  const few = all.filter((text) => text !== 'q quit' && text !== 'v serve');
  return (
    [all.join('  '), all.join(' '), few.join(' ')].find((line) => line.length < columns) ??
    few.join(' ')
  );
}

/** All keys, one on a line. */
export function helpLines(tab: Tab): string[] {
  const own = keysOf[tab].map(({ key, label }) => [keyNames[key] ?? key, label]);
  const fleet = [
    ['n', 'new agent in the current directory'],
    ['/', 'filter by name, status, backend or branch'],
  ];
  const rows = [
    ...(tab === 'Fleet' ? fleet : []),
    ...own,
    ['↑ ↓', 'select'],
    ['1-6 Tab', 'switch tabs'],
    ['R', 'refresh'],
    ['Esc', 'back to the screen of the agent'],
    ['q', 'quit'],
  ];
  return rows.map(([key = '', label = '']) => `${key.padEnd(9)} ${label}`);
}
