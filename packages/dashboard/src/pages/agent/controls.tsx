import type { DaemonSchema } from '@millrace/contract/daemon';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/confirm.js';
import { Button, DialogButton, Select } from '../../parts/controls.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { sessionActions } from '../../sessions/actions.js';
import { isOver } from '../../sessions/status.js';

type Session = DaemonSchema<'Session'>;

const refresh = ['sessions', 'session'];

/** Buttons to stop, restart and delete a session. */
export function Controls({ session }: { session: Session }) {
  const [isStopping, setIsStopping] = useState(false);
  const [, navigate] = useLocation();
  const actions = sessionActions(session.id);
  const restart = useAction({ run: actions.restart, done: () => 'Restarted.', refresh });
  const serve = useAction({ run: actions.serve, done: ({ url }) => `Served at ${url}`, refresh });
  const canStop = !isOver(session.status);
  const stop = () => setIsStopping(canStop);
  useShortcut('x', 'Stop the agent', stop);
  return (
    <>
      <Button disabled={!canStop} onClick={stop}>
        Stop
      </Button>
      <Button disabled={session.status === 'spawning'} action={restart}>
        Restart
      </Button>
      {session.worktree && !session.serve && <Button action={serve}>Serve</Button>}
      <DialogButton className="danger" label="Delete">
        {(onClose) => (
          <Confirm
            title={`Delete ${session.name}?`}
            submitLabel="Delete session"
            dangerous
            run={actions.remove}
            done={({ worktree, worktree_kept: isLeft, reason }) =>
              isLeft ? `Deleted. Its worktree ${worktree} remains: ${reason}.` : 'Deleted.'
            }
            refresh={['sessions']}
            onDone={() => navigate('/')}
            onClose={onClose}
          >
            <p>
              {canStop && 'The agent is stopped first. '}The session and its output are deleted.
              {session.worktree &&
                ' Its worktree is removed, unless it is dirty or its branch is not merged.'}
            </p>
          </Confirm>
        )}
      </DialogButton>
      {isStopping && (
        <Confirm
          title={`Stop ${session.name}?`}
          submitLabel="Stop agent"
          run={actions.stop}
          done={() => 'Stopped.'}
          refresh={refresh}
          onClose={() => setIsStopping(false)}
        >
          <p>The current turn is lost. The session and its worktree remain.</p>
        </Confirm>
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
    <Select
      aria-label="Forced compaction"
      value={set.isPending ? set.variables : session.force_compact}
      options={{ inherit: 'Use the setting', on: 'On for this agent', off: 'Off for this agent' }}
      disabled={set.isDisabled}
      onChange={(state) => set.mutate(state as Session['force_compact'])}
    />
  );
}
