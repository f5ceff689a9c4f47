import { ApiError } from '@millrace/client';
import { useEffect, useState } from 'react';
import { explain } from '../../parts/states.js';
import { openWatch, problemOf, type Change, type WatchMessage } from './api.js';
import { jsonLines } from './json-lines.js';
import type { Condition } from './query.js';

export interface SeenChange extends Change {
  /** The commit and the place in it: unlike the id, no two are the same. */
  at: string;
  committedAt: string | undefined;
}

export interface Watching {
  /** `lost` is tried again, `refused` is not. */
  state: 'off' | 'connecting' | 'live' | 'lost' | 'refused';
  /** Why it is lost or refused. */
  reason: string;
  /** Newest first. */
  changes: readonly SeenChange[];
}

const off: Watching = { state: 'off', reason: '', changes: [] };
const mostKept = 200;
const retryMs = 2_000;
const resting = 'It rests while the page is hidden.';

interface WatchOptions {
  collection: string;
  filter: Condition | undefined;
  isOn: boolean;
  onChanges: (changes: readonly SeenChange[]) => void;
}

/** Follows what changes in a collection while it is switched on. Goes on where it was cut off. */
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
    const hear = (fresh: readonly SeenChange[]) => {
      if (signal.aborted || fresh.length === 0) return;
      setWatching((before) => ({
        ...before,
        changes: [...fresh.toReversed(), ...before.changes].slice(0, mostKept),
      }));
      onChanges(fresh);
    };
    setWatching({ ...off, state: 'connecting' });
    void follow({ collection, filter, signal, change, hear });
    return () => controller.abort();
  }, [collection, filter, isOn, onChanges]);
  return watching;
}

interface FollowParts {
  collection: string;
  filter: Condition | undefined;
  signal: AbortSignal;
  change: (next: Partial<Watching>) => void;
  hear: (changes: readonly SeenChange[]) => void;
}

async function follow({ collection, filter, signal, change, hear }: FollowParts): Promise<void> {
  let token = '';
  while (!signal.aborted) {
    try {
      await untilShown(signal);
      const asked = { ...(filter && { filter }), ...(token !== '' && { resume_token: token }) };
      const stream = await openWatch(collection, asked, whileShown(signal));
      change({ state: 'live', reason: '' });
      for await (const message of jsonLines<WatchMessage>(stream)) {
        if (message.error) throw problemOf(0, message.error);
        token = message.resume_token;
        hear(seen(message));
      }
      change({ state: 'lost', reason: 'The database ended the stream.' });
    } catch (error) {
      const reason = document.hidden ? resting : explain(error).title;
      if (isForgotten(error)) token = '';
      else if (isRefusal(error)) return change({ state: 'refused', reason });
      change({ state: 'lost', reason });
    }
    await pause(signal);
  }
}

function seen({ kind, seq, changes, committed_at }: WatchMessage): SeenChange[] {
  if (kind !== 'WATCH_KIND_CHANGES') return [];
  return changes.map((one, index) => ({
    ...one,
    at: `${seq}.${index}`,
    committedAt: committed_at,
  }));
}

/**
 * Aborted with the signal, and when the page is hidden: a browser has six connections to a server
 * for all its tabs together, and nobody looks at this one.
 */
function whileShown(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const look = () => {
    if (document.hidden || signal.aborted) controller.abort();
  };
  const stop = () => document.removeEventListener('visibilitychange', look);
  document.addEventListener('visibilitychange', look);
  signal.addEventListener('abort', look);
  controller.signal.addEventListener('abort', stop);
  return controller.signal;
}

function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

// The changes between are gone, so it goes on from now.
const forgotten = new Set(['WATCH_COMPACTED', 'BAD_RESUME_TOKEN', 'LINEAGE_MISMATCH']);

const isForgotten = (error: unknown): boolean =>
  error instanceof ApiError && forgotten.has(error.code);

/** Asked again it would be refused again, unless there were too many. */
const isRefusal = (error: unknown): boolean =>
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
