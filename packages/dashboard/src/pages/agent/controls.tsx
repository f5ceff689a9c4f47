import type { DaemonSchema } from '@millrace/contract/daemon';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { sessionActions } from '../../sessions/actions.js';
import { isOver } from '../../sessions/status.js';

type Session = DaemonSchema<'Session'>;

const refresh = ['sessions', 'session'];

/** Buttons to stop, restart and delete a session. */
export function Controls({ session }: { session: Session }) {
  const [confirming, setConfirming] = useState<'stop' | 'delete'>();
  const [, navigate] = useLocation();
  const actions = sessionActions(session.id);
  const close = () => setConfirming(undefined);
  const stop = useAction({ run: actions.stop, done: () => 'Stopped.', refresh, onDone: close });
  const restart = useAction({ run: actions.restart, done: () => 'Restarted.', refresh });
  const remove = useAction({
    run: actions.remove,
    done: ({ worktree, worktree_kept, reason }) =>
      worktree_kept ? `Deleted. Its worktree ${worktree} remains: ${reason}.` : 'Deleted.',
    refresh: ['sessions'],
    onDone: () => navigate('/'),
  });
  const serve = useAction({
    run: actions.serve,
    done: ({ url }) => `Served at ${url}`,
    refresh,
  });
  const canStop = !isOver(session.status);
  useShortcut('x', 'Stop the agent', () => canStop && setConfirming('stop'));
  return (
    <>
      <button
        type="button"
        disabled={!canStop || stop.isPending}
        onClick={() => setConfirming('stop')}
      >
        Stop
      </button>
      <button
        type="button"
        disabled={session.status === 'spawning' || restart.isPending}
        onClick={() => restart.mutate()}
      >
        Restart
      </button>
      {session.worktree && !session.serve && (
        <button type="button" disabled={serve.isPending} onClick={() => serve.mutate()}>
          Serve
        </button>
      )}
      <button type="button" className="danger" onClick={() => setConfirming('delete')}>
        Delete
      </button>
      {confirming === 'stop' && (
        <FormDialog
          title={`Stop ${session.name}?`}
          submitLabel="Stop agent"
          busy={stop.isPending}
          onSubmit={() => stop.mutate()}
          onClose={close}
        >
          <p>The current turn is lost. The session and its worktree remain.</p>
        </FormDialog>
      )}
      {confirming === 'delete' && (
        <FormDialog
          title={`Delete ${session.name}?`}
          submitLabel="Delete session"
          dangerous
          busy={remove.isPending}
          onSubmit={() => remove.mutate()}
          onClose={close}
        >
          <p>
            {canStop && 'The agent is stopped first. '}The session and its output are deleted.
            {session.worktree &&
              ' Its worktree is removed, unless it is dirty or its branch is not merged.'}
          </p>
        </FormDialog>
      )}
    </>
  );
}

/** Overrides forced compaction for one agent. */
export function CompactChoice({ session }: { session: Session }) {
  const set = useAction({
    run: (state: Session['force_compact']) => sessionActions(session.id).setForceCompact(state),
    done: ({ effective }) => `Forced compaction is ${effective ? 'on' : 'off'} for this agent.`,
    refresh,
  });
  return (
    <select
      aria-label="Forced compaction"
      value={set.isPending ? set.variables : session.force_compact}
      disabled={set.isPending}
      onChange={(event) => set.mutate(event.target.value as Session['force_compact'])}
    >
      <option value="inherit">Use the setting</option>
      <option value="on">On for this agent</option>
      <option value="off">Off for this agent</option>
    </select>
  );
}
