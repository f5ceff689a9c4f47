import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import type { Snapshot } from './live-data.js';
import { countOf, fitted, tabs, viewOf } from './views.js';

const now = Date.parse('2026-01-15T09:30:00.000Z');
const sheet = { columns: 78, paint: plain };
const session = { ...contractExample('Session'), status: 'waiting_for_input' as const };
const snapshot: Snapshot = {
  data: {
    sessions: [session],
    questions: [{ ...contractExample('Question'), session_id: session.id }],
    queues: [],
    registry: contractExample('Registry'),
    spend: contractExample('SpendRollup'),
    notes: contractExample('Inbox').notes,
  },
  errors: {},
  isLive: true,
  lost: undefined,
};

test.each(tabs)('%s: every line fits, and rows match what they stand for', (tab) => {
  const view = viewOf(tab, snapshot, now, sheet)!;
  for (const { line } of view.rows) expect(line.length).toBeLessThanOrEqual(78);
  expect(view.rows.every(({ line }) => tab === 'Spend' || line !== '')).toBe(true);
  for (const { id } of view.rows) {
    if (id !== null) expect(view.details(id).length).toBeGreaterThan(0);
  }
});

test('views: without data a tab is loading, not empty', () => {
  const loading: Snapshot = { ...snapshot, data: {} };
  for (const tab of tabs) expect(viewOf(tab, loading, now, sheet)).toBeUndefined();
  expect(countOf('Fleet', loading)).toBeUndefined();
});

test('views: a question is shown with the name of its agent', () => {
  expect(countOf('Questions', snapshot)).toBe(1);
  expect(viewOf('Questions', snapshot, now, sheet)?.rows[0]?.line).toContain(session.name);
});

test('views: details are wrapped, cut and safe', () => {
  expect(fitted(['a\u001B[2J', 'one two three'], 7, 3)).toEqual(['a␛[2J', 'one two', 'three']);
  expect(fitted(['1', '2', '3'], 9, 2)).toEqual(['1', '…']);
});
