import type { Actions } from './actions.js';
import type { Snapshot } from './live-data.js';
import type { Prompt } from './prompts.js';
import type { Tab } from './views.js';

/** What a key does: run at once, ask first, or hand over the terminal. */
export type Effect =
  | { readonly run: () => Promise<string> }
  | { readonly prompt: Prompt }
  | { readonly attach: string };

interface KeyCommand {
  readonly key: string;
  readonly label: string;
  effect(id: string, actions: Actions, snapshot: Snapshot): Effect;
}

/** Keys of each tab that act on the selected row. */
export const keysOf: Readonly<Record<Tab, readonly KeyCommand[]>> = {
  Fleet: [
    { key: 'a', label: 'attach', effect: (id, actions) => ({ attach: actions.attachable(id) }) },
    {
      key: 'i',
      label: 'send input',
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
      key: 'x',
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

/** The keys at the bottom of a tab. */
export function keyHelp(tab: Tab): string {
  const own = keysOf[tab].map(({ key, label }) => `${keyNames[key] ?? key} ${label}`);
  return [...own, '1-6 Tab switch', '↑↓ select', 'R refresh', 'q quit'].join('  ');
}
