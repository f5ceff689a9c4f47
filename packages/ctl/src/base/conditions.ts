import { UsageError } from '@millrace/kit/errors';
import type { Filter, Json } from '@millrace/db';
import { tokenize, unquote } from './tokens.js';

const operators = ['!=', '>=', '<=', '^=', '=~', '!~', '!?', '=', '>', '<', '~', '?'] as const;
type Operator = (typeof operators)[number];

const shape = /^([^\s=!<>^~?'"(){}[\],]+)(!=|>=|<=|\^=|=~|!~|!\?|=|>|<|~|\?)([^]*)$/;

/**
 * Parses conditions to a filter: all must match, unless `or` is between them. `not` negates the
 * next one and ( ) group. Undefined means no filter.
 */
export function parseConditions(args: readonly string[]): Filter | undefined {
  // Such as "$CONDITION" without a value, which must not select everything.
  if (args.some((arg) => arg.trim() === '')) {
    throw new UsageError('A condition is empty. Leave it out to select everything.');
  }
  const words = args.flatMap(wordsOf);
  if (words.length === 0) return undefined;
  const parser = new Parser(words);
  const filter = parser.any();
  parser.end();
  return filter;
}

/** One argument may contain several conditions, or one whose value has spaces. */
function wordsOf(arg: string): string[] {
  const { words, isOpen } = tokenize(arg);
  const parts = words.flatMap(apartFromBrackets);
  const areAll = parts.every((word) => keywords.has(word) || shape.test(word));
  return areAll && !isOpen ? parts : [arg];
}

const keywords = new Set(['and', 'or', 'not', '(', ')']);

/**
 * `(age>30` is a parenthesis and a condition; the parentheses of `name=~(a|b)` belong to the value.
 */
function apartFromBrackets(word: string): string[] {
  const opening: string[] = [];
  const closing: string[] = [];
  let inside = word;
  for (; inside.startsWith('('); inside = inside.slice(1)) opening.push('(');
  while (inside.endsWith(')') && count(inside, ')') > count(inside, '(')) {
    closing.push(')');
    inside = inside.slice(0, -1);
  }
  return [...opening, ...(inside === '' ? [] : [inside]), ...closing];
}

function count(text: string, char: string): number {
  return text.split(char).length - 1;
}

class Parser {
  #at = 0;

  constructor(private readonly words: readonly string[]) {}

  any(): Filter {
    const parts = [this.#all()];
    while (this.#take('or')) parts.push(this.#all());
    return parts.length === 1 ? parts[0]! : { or: parts };
  }

  end(): void {
    const rest = this.words[this.#at];
    if (rest !== undefined)
      throw new UsageError(`"${rest}" closes a parenthesis that is not open.`);
  }

  #all(): Filter {
    const parts = [this.#one()];
    for (;;) {
      const took = this.#take('and');
      const next = this.words[this.#at];
      if (!took && (next === undefined || next === 'or' || next === ')')) break;
      parts.push(this.#one());
    }
    return parts.length === 1 ? parts[0]! : { and: parts };
  }

  #one(): Filter {
    if (this.#take('not')) return { not: this.#one() };
    if (this.#take('(')) {
      const inside = this.any();
      if (!this.#take(')')) throw new UsageError('A parenthesis in the conditions is not closed.');
      return inside;
    }
    const word = this.words[this.#at++];
    if (word === undefined)
      throw new UsageError('The conditions end where another one is expected.');
    return parseCondition(word);
  }

  #take(word: string): boolean {
    if (this.words[this.#at] !== word) return false;
    this.#at++;
    return true;
  }
}

function parseCondition(word: string): Filter {
  const [, field, operator, text] = shape.exec(word) ?? [];
  if (field === undefined || operator === undefined || text === undefined) {
    throw new UsageError(
      `"${word}" is not a condition. Write a field, an operator and a value without ` +
        `spaces, as in age>30 or city=Bern. Operators are ${operators.join(' ')}.`,
    );
  }
  checkValue(operator as Operator, text, word);
  return conditionOf(field, operator as Operator, text, word);
}

/** `age>>5`, `age==5` and `age<>5` are mistakes; such a value can be quoted. */
function checkValue(operator: Operator, text: string, word: string): void {
  if (operator === '?' || operator === '!?') return;
  if (text === '' && operator !== '=' && operator !== '!=') {
    throw new UsageError(`"${word}": a value must follow ${operator}, as in age>30.`);
  }
  if (operator === '=~' || !/^[=<>]/.test(text)) return;
  throw new UsageError(
    `"${word}" is not a condition: ${operator}${text[0]} is not an operator. Operators are ` +
      `${operators.join(' ')}. Put a value that starts with ${text[0]} in quotes.`,
  );
}

function conditionOf(field: string, operator: Operator, text: string, word: string): Filter {
  switch (operator) {
    case '=':
      return equalTo(field, text);
    case '!=': {
      const list = listOf(text);
      return list ? { field, op: 'nin', value: list } : { field, op: 'ne', value: scalar(text) };
    }
    case '>':
      return { field, op: 'gt', value: scalar(text) };
    case '>=':
      return { field, op: 'gte', value: scalar(text) };
    case '<':
      return { field, op: 'lt', value: scalar(text) };
    case '<=':
      return { field, op: 'lte', value: scalar(text) };
    case '^=':
      return { field, op: 'prefix', value: unquote(text) };
    case '~':
      return { field, op: 'contains', value: scalar(text) };
    case '!~':
      return { not: { field, op: 'contains', value: scalar(text) } };
    case '=~':
      return { field, op: 'regex', value: unquote(text) };
    case '?':
    case '!?':
      if (text !== '')
        throw new UsageError(`"${word}": a value must not follow the question mark.`);
      return { field, op: 'exists', value: operator === '?' };
  }
}

function equalTo(field: string, text: string): Filter {
  const range = /^([^"'[{]*?)\.\.(.*)$/s.exec(text);
  if (range?.[1] && range[2]) {
    return { field, op: 'between', value: [scalar(range[1]), scalar(range[2])] };
  }
  const list = listOf(text);
  return list ? { field, op: 'in', value: list } : { field, op: 'eq', value: scalar(text) };
}

/** Parses `Bern,Oslo` as a list; undefined without a comma outside of quotes and brackets. */
function listOf(text: string): Json[] | undefined {
  if (/^[[{]/.test(text)) return undefined;
  const items = text.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^,]+/gs) ?? [];
  const commas = text.replaceAll(/"(?:[^"\\]|\\.)*"|'[^']*'/gs, '').split(',').length - 1;
  return commas > 0 && items.length > 1 ? items.map(scalar) : undefined;
}

/** Parses JSON, or else a text: `36`, `true`, `null`, `"8001"`, `Bern`. */
export function scalar(text: string): Json {
  if (/^["']/.test(text)) return unquote(text);
  if (/^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[[{].*[\]}])$/s.test(text)) {
    try {
      return JSON.parse(text) as Json;
    } catch {
      // 007 and [draft] are texts, not JSON.
    }
  }
  return text;
}
