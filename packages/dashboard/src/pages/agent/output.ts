import { useEffect, useRef, useState } from 'react';
import { daemon } from '../../api/client.js';

/** Lines held in the page; the daemon has the older ones on disk. */
const maxLines = 20_000;
const pageLines = 2000;
const pollMs = 1000;

export interface Output {
  lines: readonly string[];
  /** Number of lines dropped before the first one. */
  dropped: number;
  isLoading: boolean;
  error: unknown;
}

const nothing: Output = { lines: [], dropped: 0, isLoading: true, error: undefined };

/** The output of an agent, polled while it runs and the page is visible. */
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
    // A full page means that there is more to read.
    if (count >= pageLines) continue;
    // The last lines are read after the end; then polling stops until the agent restarts.
    do await pause(pollMs, signal);
    while (hasEnded && !hasFailed && !isLive() && !signal.aborted);
  }
}

/** Appends lines and drops the oldest ones above the limit. */
export function extended(output: Output, more: readonly string[]): Output {
  const isSame = more.length === 0 && !output.isLoading && output.error === undefined;
  if (isSame) return output;
  const all = [...output.lines, ...more];
  const over = Math.max(all.length - maxLines, 0);
  return {
    lines: over > 0 ? all.slice(over) : all,
    dropped: output.dropped + over,
    isLoading: false,
    error: undefined,
  };
}

/** Waits, and continues waiting while the page is hidden. */
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
