import type { JsonObject } from '@bufbuild/protobuf';

export function textIn(message: JsonObject, name: string): string {
  const value = message[name];
  return typeof value === 'string' ? value : '';
}

/** The fields of a message that belong to the body of the REST call. */
export function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}
