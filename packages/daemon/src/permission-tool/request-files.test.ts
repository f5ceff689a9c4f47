import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  openRequests,
  readAnswer,
  removeRequest,
  resetRequests,
  writeAnswer,
  writeRequest,
} from './requests.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-permissions-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const request = { id: 'a'.repeat(32), title: 'Bash', tool: 'Bash', body: 'make' };

test('permission request: is open until it is answered', () => {
  expect(readAnswer(directory, request.id)).toBeUndefined();
  writeRequest(directory, request);
  expect(openRequests(directory)).toEqual([request]);
  const answer = { isAllowed: true, message: '' };
  expect(writeAnswer(directory, request.id, answer)).toBe(true);
  expect(openRequests(directory)).toEqual([]);
  expect(readAnswer(directory, request.id)).toEqual(answer);
  removeRequest(directory, request.id);
  expect(readdirSync(directory)).toEqual([]);
});

test('permission request: an answer to a removed request is not taken', () => {
  writeRequest(directory, request);
  removeRequest(directory, request.id);
  expect(writeAnswer(directory, request.id, { isAllowed: true, message: '' })).toBe(false);
  expect(readdirSync(directory)).toEqual([]);
});

test('permission request: other files and invalid requests are ignored', () => {
  const put = (name: string, value: unknown) =>
    writeFileSync(join(directory, name), typeof value === 'string' ? value : JSON.stringify(value));
  const id = 'b'.repeat(32);
  put('notes.txt', 'x');
  put(`${id}.request.json`, '{"id":');
  put(`${'c'.repeat(32)}.request.json`, { ...request, id: 'd'.repeat(32) });
  put(`${'e'.repeat(32)}.request.json`, { ...request, id: 'e'.repeat(32), body: 1 });
  put(`${'f'.repeat(32)}.request.json`, `${JSON.stringify(request)}${' '.repeat(70_000)}`);
  expect(openRequests(directory)).toEqual([]);
});

test('permission request: a new start forgets the requests of the last one', () => {
  writeRequest(directory, request);
  resetRequests(directory);
  expect(openRequests(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
  expect(openRequests(directory)).toEqual([]);
});
