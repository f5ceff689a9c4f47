import { Box, Text } from 'ink';
import { useEffect, useState, type ReactNode } from 'react';
import { systemClock, type Timer } from '@millrace/kit/clock';
import { reasonOf } from '@millrace/contract/lists/daemon';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Paint } from '../render/paint.js';
import { printable } from '../render/text.js';
import type { Actions, PreviewMode } from './actions.js';
import type { Session } from './live-data.js';

/** How often the selected agent is read again. */
const pauseMs = 500;

interface Wanted {
  readonly id: string | undefined;
  readonly mode: PreviewMode;
  readonly height: number;
  readonly paint: Paint;
}

/** The lines of the selected agent, read again while it is selected. */
export function usePreview(actions: Actions, { id, mode, height, paint }: Wanted): string[] {
  const [shown, setShown] = useState<{ key: string; lines: string[] }>({ key: '', lines: [] });
  const key = `${id} ${mode}`;
  useEffect(() => {
    if (id === undefined) return undefined;
    let timer: Timer | undefined;
    let isOver = false;
    const read = async (): Promise<void> => {
      const lines = await actions
        .preview(id, mode, height, paint)
        .catch((error: unknown) => [
          printable(error instanceof Refusal ? error.detail : messageOf(error)),
        ]);
      if (isOver) return;
      // The same lines draw nothing.
      setShown((before) =>
        before.key === key && before.lines.join('\n') === lines.join('\n')
          ? before
          : { key, lines },
      );
      timer = systemClock.after(pauseMs, () => void read());
    };
    void read();
    return () => {
      isOver = true;
      timer?.cancel();
    };
  }, [actions, id, mode, height, paint, key]);
  // Those of another agent are not shown for this one.
  return shown.key === key ? shown.lines : [];
}

interface PreviewProps {
  readonly session: Session | undefined;
  readonly mode: PreviewMode;
  readonly lines: readonly string[];
  readonly columns: number;
  readonly height: number;
}

/** The right side of the fleet: one line about the agent, then its screen, log or changes. */
export function Preview({ session, mode, lines, columns, height }: PreviewProps): ReactNode {
  const about = session ? aboutText(session, mode) : '';
  return (
    <Box flexDirection="column" width={columns} height={height + 1} overflow="hidden">
      <Text wrap="truncate" bold>{`│ ${about}`}</Text>
      {Array.from({ length: height }, (_, at) => (
        // eslint-disable-next-line react/no-array-index-key
        <Text key={at} wrap="truncate">{`│ ${lines[at] ?? ''}`}</Text>
      ))}
    </Box>
  );
}

function aboutText(session: Session, mode: PreviewMode) {
  const { driver, backend, branch } = session;
  const what = mode === 'screen' ? (driver === 'tmux' ? 'screen' : 'logs') : mode;
  const parts = [what, backend, branch ?? '', reasonOf(session) ?? ''].filter(
    (part) => part !== '',
  );
  return printable(parts.join(' · '));
}
