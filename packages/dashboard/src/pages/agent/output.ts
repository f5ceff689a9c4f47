import { useEffect, useRef, useState } from 'react';
import { daemon } from '../../api/client.js';

/** What the page keeps; older lines are on the daemon's disk. */
const keptLines = 20_000;
const pageLines = 2000;
const pollMs = 1000;

export interface Output {
  lines: readonly string[];
  /** How many lines stood before the first one kept here. */
  dropped: number;
  isLoading: boolean;
  error: unknown;
}

const nothing: Output = { lines: [], dropped: 0, isLoading: true, error: undefined };

/** An agent's output, followed while it lives and the page is in view. */
export function useOutput(id: string, isLive: boolean): Output {
  const [output, setOutput] = useState(nothing);
  const live = useRef(isLive);
  useEffect(() => {
    live.current = isLive;
  }, [isLive]);
  useEffect(() => {
    const stop = new AbortController();
    setOutput(nothing);
    void follow(id, () => live.current, stop.signal, setOutput);
    return () => stop.abort();
  }, [id]);
  return output;
}

async function follow(
  id: string,
  isLive: () => boolean,
  signal: AbortSignal,
  change: (update: (output: Output) => Output) => void,
): Promise<void> {
  let after: number | undefined;
  while (!signal.aborted) {
    const hasEnded = !isLive();
    let count = 0;
    let hasFailed = false;
    try {
      const query = { limit: pageLines, ...(after !== undefined && { after }) };
      const request = { path: { id }, query, signal };
      const { lines, next } = await daemon.call('getSessionOutput', request);
      after = next;
      count = lines.length;
      change((output) => extended(output, lines));
    } catch (error) {
      if (signal.aborted) return;
      hasFailed = true;
      change((output) => ({ ...output, isLoading: false, error }));
    }
    // A full page means that there is more to read at once.
    if (count >= pageLines) continue;
    // What an agent says last is read after its end; then there is nothing more until it restarts.
    do await pause(pollMs, signal);
    while (hasEnded && !hasFailed && !isLive() && !signal.aborted);
  }
}

/** The output with more lines at its end, and no more than can be kept. */
export function extended(output: Output, more: readonly string[]): Output {
  const isSame = more.length === 0 && !output.isLoading && output.error === undefined;
  if (isSame) return output;
  const all = [...output.lines, ...more];
  const over = Math.max(all.length - keptLines, 0);
  return {
    lines: over > 0 ? all.slice(over) : all,
    dropped: output.dropped + over,
    isLoading: false,
    error: undefined,
  };
}

/** Waits that long, and as long as the page is hidden. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
  if (document.visibilityState === 'visible' || signal.aborted) return;
  await new Promise<void>((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
