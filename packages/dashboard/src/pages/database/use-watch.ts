import { ApiError } from '@millrace/client';
import { useEffect, useState } from 'react';
import { explain } from '../../parts/states.js';
import { openWatch, errorOf, type Change, type WatchMessage } from './api.js';
import { jsonLines } from './json-lines.js';
import type { Condition } from './query.js';

export interface WatchedChange extends Change {
  /** Commit sequence number and index in the commit; unique, unlike the record id. */
  at: string;
  committedAt: string | undefined;
}

export interface Watching {
  /** `lost` is retried, `refused` is not. */
  state: 'off' | 'connecting' | 'live' | 'lost' | 'refused';
  /** Why it is lost or refused. */
  reason: string;
  /** Newest first. */
  changes: readonly WatchedChange[];
}

const off: Watching = { state: 'off', reason: '', changes: [] };
const maxChanges = 200;
const retryMs = 2_000;
const pausedText = 'Paused while the page is hidden.';

interface WatchOptions {
  collection: string;
  filter: Condition | undefined;
  isOn: boolean;
  onChanges: (changes: readonly WatchedChange[]) => void;
}

/** Watches a collection while it is on; a lost stream resumes from its last position. */
export function useWatch({ collection, filter, isOn, onChanges }: WatchOptions): Watching {
  const [watching, setWatching] = useState(off);
  useEffect(() => {
    if (!isOn) {
      setWatching(off);
      return;
    }
    const controller = new AbortController();
    const { signal } = controller;
    const change = (next: Partial<Watching>) => {
      if (!signal.aborted) setWatching((before) => ({ ...before, ...next }));
    };
    const receive = (fresh: readonly WatchedChange[]) => {
      if (signal.aborted || fresh.length === 0) return;
      setWatching((before) => ({
        ...before,
        changes: [...fresh.toReversed(), ...before.changes].slice(0, maxChanges),
      }));
      onChanges(fresh);
    };
    setWatching({ ...off, state: 'connecting' });
    void follow({ collection, filter, signal, change, onChanges: receive });
    return () => controller.abort();
  }, [collection, filter, isOn, onChanges]);
  return watching;
}

interface FollowOptions {
  collection: string;
  filter: Condition | undefined;
  signal: AbortSignal;
  change: (next: Partial<Watching>) => void;
  onChanges: (changes: readonly WatchedChange[]) => void;
}

async function follow({
  collection,
  filter,
  signal,
  change,
  onChanges,
}: FollowOptions): Promise<void> {
  let token = '';
  while (!signal.aborted) {
    try {
      await untilVisible(signal);
      const request = { ...(filter && { filter }), ...(token !== '' && { resume_token: token }) };
      const stream = await openWatch(collection, request, abortWhenHidden(signal));
      change({ state: 'live', reason: '' });
      for await (const message of jsonLines<WatchMessage>(stream)) {
        if (message.error) throw errorOf(0, message.error);
        token = message.resume_token;
        onChanges(changesIn(message));
      }
      change({ state: 'lost', reason: 'The database closed the stream.' });
    } catch (error) {
      const reason = document.hidden ? pausedText : explain(error).title;
      if (isPositionLost(error)) token = '';
      else if (isPermanent(error)) return change({ state: 'refused', reason });
      change({ state: 'lost', reason });
    }
    await pause(signal);
  }
}

function changesIn({ kind, seq, changes, committed_at }: WatchMessage): WatchedChange[] {
  if (kind !== 'WATCH_KIND_CHANGES') return [];
  return changes.map((one, index) => ({
    ...one,
    at: `${seq}.${index}`,
    committedAt: committed_at,
  }));
}

/**
 * Aborts with the signal, and when the page is hidden: a browser has six connections to a server
 * for all its tabs together.
 */
function abortWhenHidden(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const check = () => {
    if (document.hidden || signal.aborted) controller.abort();
  };
  const stop = () => document.removeEventListener('visibilitychange', check);
  document.addEventListener('visibilitychange', check);
  signal.addEventListener('abort', check);
  controller.signal.addEventListener('abort', stop);
  return controller.signal;
}

function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', check);
      resolve();
    };
    document.addEventListener('visibilitychange', check);
    signal.addEventListener('abort', check);
  });
}

// The changes since the resume token are gone, so the watch starts from now.
const positionLostCodes = new Set(['WATCH_COMPACTED', 'BAD_RESUME_TOKEN', 'LINEAGE_MISMATCH']);

const isPositionLost = (error: unknown): boolean =>
  error instanceof ApiError && positionLostCodes.has(error.code);

/** A 4xx other than 429 fails again on retry. */
const isPermanent = (error: unknown): boolean =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, retryMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
