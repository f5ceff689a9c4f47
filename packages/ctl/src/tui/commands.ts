import type { Actions, PreviewMode } from './actions.js';
import type { Snapshot } from './live-data.js';
import type { Prompt } from './prompts.js';
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

/** Keys of each tab that act on the selected row. */
export const keysOf: Readonly<Record<Tab, readonly KeyCommand[]>> = {
  Fleet: [
    {
      key: 'return',
      label: 'attach',
      effect: (id, actions) => ({ attach: actions.attachable(id) }),
    },
    { key: 'd', label: 'diff', effect: () => ({ preview: 'diff' }) },
    { key: 'l', label: 'logs', effect: () => ({ preview: 'logs' }) },
    { key: 'a', label: 'answer', effect: answerAgent },
    {
      key: 's',
      label: 'send',
      effect: (id, actions) => ({
        prompt: {
          kind: 'text',
          label: 'Send to the agent',
          value: '',
          submit: (text) => actions.send(id, text),
        },
      }),
    },
    {
      key: 'm',
      label: 'merge',
      effect: (id, actions) => ({
        prompt: {
          kind: 'confirm',
          label: 'Merge the branch of this agent into its base?',
          run: () => actions.merge(id),
        },
      }),
    },
    { key: 'v', label: 'serve', effect: (id, actions) => ({ run: () => actions.serve(id) }) },
    {
      key: 'k',
      label: 'stop',
      effect: (id, actions) => ({
        prompt: { kind: 'confirm', label: 'Stop this agent?', run: () => actions.stop(id) },
      }),
    },
  ],
  Questions: [
    { key: 'return', label: 'answer', effect: answerEffect },
    {
      key: 'a',
      label: 'attach',
      effect: (id, actions, snapshot) => ({
        attach: actions.attachable(questionOf(id, snapshot).session_id),
      }),
    },
  ],
  Queues: [
    {
      key: 'p',
      label: 'pause/resume',
      effect: (name, actions) => ({ run: () => actions.togglePause(name) }),
    },
    { key: 'r', label: 'redrive', effect: redriveEffect },
  ],
  Backends: [
    {
      key: 'e',
      label: 'enable/disable',
      effect: (id, actions) => ({ run: () => actions.toggleBackend(id) }),
    },
    {
      key: 'd',
      label: 'make default',
      effect: (id, actions) => ({ run: () => actions.makeDefault(id) }),
    },
  ],
  Spend: [],
  Inbox: [
    {
      key: 'return',
      label: 'mark read',
      effect: (id, actions) => ({ run: () => actions.markRead([id]) }),
    },
    {
      key: 'A',
      label: 'mark all read',
      effect: (_id, actions, { data }) => {
        const unread = (data.notes ?? []).filter(({ read }) => !read).map(({ id }) => id);
        return { run: () => actions.markRead(unread) };
      },
    },
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
  return {
    prompt: {
      kind: 'text',
      label: 'Answer',
      value: '',
      submit: (text) => actions.answer(id, { text }),
    },
  };
}

function redriveEffect(name: string, actions: Actions): Effect {
  const count = actions.deadIn(name);
  if (count === 0) return { run: () => Promise.resolve(`${name} has no dead tasks.`) };
  const label = `Run ${count} dead ${count === 1 ? 'task' : 'tasks'} of ${name} again?`;
  return { prompt: { kind: 'confirm', label, run: () => actions.redrive(name) } };
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
