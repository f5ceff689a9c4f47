import { coreOf, defOf, type Schema } from './schema.js';
import { yaml } from './yaml-library.js';

const words: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  '1': true,
  false: false,
  no: false,
  off: false,
  '0': false,
};

/** `on`, `off`, `yes` and the like; `undefined` for any other word. */
export function switchOf(text: string): boolean | undefined {
  return Object.hasOwn(words, text.toLowerCase()) ? words[text.toLowerCase()] : undefined;
}

/**
 * Converts the text of a flag or a variable to the type of a setting. Text that does not match is
 * returned unchanged, and the schema rejects it.
 */
export function valueOfText(schema: Schema, text: string): unknown {
  const def = defOf(coreOf(schema));
  if (def.type === 'boolean') return switchOf(text) ?? text;
  if (def.type === 'number') return numberOf(text) ?? text;
  if (def.type === 'union') return valueOfUnion(def.options, text);
  if (def.type === 'array' && !text.startsWith('[')) return splitList(def.element, text);
  return ['array', 'object', 'record', 'tuple'].includes(def.type) ? flowValue(text) : text;
}

/** A flag that was given several times. */
export function valueOfTexts(schema: Schema, texts: readonly string[]): unknown {
  const def = defOf(coreOf(schema));
  if (def.type !== 'array') return valueOfText(schema, texts.at(-1)!);
  return texts.flatMap((text) => valueOfText(schema, text));
}

function numberOf(text: string): number | undefined {
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

function valueOfUnion(options: readonly Schema[], text: string): unknown {
  const types = new Set(options.map((option) => defOf(coreOf(option)).type));
  const flow = types.has('object') || types.has('array') || types.has('record');
  if (flow && /^[[{]/.test(text)) return flowValue(text);
  const list = options.find((option) => defOf(coreOf(option)).type === 'array');
  if (list && !types.has('string')) return valueOfText(list, text);
  if (types.has('number')) return numberOf(text) ?? text;
  if (types.has('boolean') && /^(true|false)$/.test(text)) return text === 'true';
  return text;
}

// `a, b` is two items when items are scalars; an item that is a map contains commas.
function splitList(element: Schema, text: string): unknown[] {
  if (text.startsWith('{')) return [flowValue(text)];
  if (text === '') return [];
  return text.split(',').map((item) => valueOfText(element, item.trim()));
}

function flowValue(text: string): unknown {
  try {
    return yaml().parse(text, { maxAliasCount: 0 }) as unknown;
  } catch {
    return text;
  }
}
