import { badField } from '../service/values.js';

/** The query parameters, in order. */
export function parseQuery(text: string): [name: string, value: string][] {
  if (text === '') return [];
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      if (equals === -1) return [decode(pair, 'The query'), ''];
      const name = decode(pair.slice(0, equals), 'The query');
      return [name, decode(pair.slice(equals + 1), name)];
    });
}

function decode(text: string, name: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw badField(name, 'is not UTF-8 after percent-decoding');
  }
}
