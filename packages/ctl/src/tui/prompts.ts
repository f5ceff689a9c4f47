import type { Key } from 'ink';

/** What the bottom of the screen asks for. */
export type Prompt =
  | { readonly kind: 'confirm'; readonly label: string; readonly run: () => Promise<string> }
  | {
      readonly kind: 'choice';
      readonly label: string;
      readonly options: readonly string[];
      readonly pick: (at: number) => Promise<string>;
    }
  | {
      readonly kind: 'text';
      readonly label: string;
      readonly value: string;
      readonly submit: (text: string) => Promise<string>;
      /** Called with each change of the text. */
      readonly onChange?: (text: string) => void;
      /** An empty text is a text too. */
      readonly mayBeEmpty?: boolean;
    };

/** The prompt after a key, and what to run when the key has completed it. */
export interface Step {
  readonly prompt: Prompt | undefined;
  readonly run?: () => Promise<string>;
}

export function stepOf(prompt: Prompt, input: string, key: Key): Step {
  if (key.escape) return { prompt: undefined };
  switch (prompt.kind) {
    case 'confirm':
      return input === 'y' ? { prompt: undefined, run: prompt.run } : { prompt: undefined };
    case 'choice': {
      const at = Number(input) - 1;
      const isOne = Number.isInteger(at) && at >= 0 && at < prompt.options.length;
      return isOne ? { prompt: undefined, run: () => prompt.pick(at) } : { prompt };
    }
    case 'text':
      return textStep(prompt, input, key);
  }
}

function textStep(prompt: Prompt & { kind: 'text' }, input: string, key: Key): Step {
  if (key.ctrl || key.meta) return { prompt };
  // On a busy machine several keys arrive as one input, with Enter as the last one.
  const keys = key.return ? '\r' : key.backspace || key.delete ? '\u007F' : input;
  let { value } = prompt;
  for (const each of keys.replace(/\r$/, '')) {
    value = each === '\u007F' || each === '\b' ? value.slice(0, -1) : value + each;
  }
  if (!keys.endsWith('\r'))
    return { prompt: value === prompt.value ? prompt : { ...prompt, value } };
  const isNothing = value.trim() === '' && !prompt.mayBeEmpty;
  return { prompt: undefined, ...(!isNothing && { run: () => prompt.submit(value) }) };
}

/** Keys of a prompt, for the last line. */
export function promptKeys(prompt: Prompt): string {
  switch (prompt.kind) {
    case 'confirm':
      return 'y yes  n no';
    case 'choice':
      return `1-${prompt.options.length} choose  Esc cancel`;
    case 'text':
      return 'Enter send  Esc cancel';
  }
}

export function confirmation(label: string, run: () => Promise<string>): Prompt {
  return { kind: 'confirm', label, run };
}

export function textPrompt(
  label: string,
  submit: (text: string) => Promise<string>,
  more: Partial<Prompt & { kind: 'text' }> = {},
): Prompt {
  return { kind: 'text', label, value: '', submit, ...more };
}
