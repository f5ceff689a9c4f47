import { ApiError } from '@millrace/client';
import { useState } from 'react';
import { useAction } from '../../../parts/action.js';
import { Check } from '../../../parts/controls.js';
import { Dialog } from '../../../parts/dialog.js';
import { FormDialog } from '../../../parts/form-dialog.js';
import { OutsideLink } from '../../../parts/outside-link.js';
import { explain } from '../../../parts/states.js';
import { ActionFields } from './action-fields.js';
import { bodyOf, doneText, titles } from './actions.js';
import { runAction, type ActionResult, type WorkAction } from './api.js';

interface ActionDialogProps {
  action: WorkAction;
  session: { id: string; name: string; status: string };
  base: string | null;
  onClose: () => void;
}

interface Problem {
  text: string;
  conflicts: readonly string[];
}

/** Runs one action on the work of a session. A refusal stays in the dialog. */
export function ActionDialog({ action, session, base, onClose }: ActionDialogProps) {
  const [problem, setProblem] = useState<Problem>();
  const [opened, setOpened] = useState<string>();
  const run = useAction({
    run: (body: object) => runAction(session.id, action, body),
    done: (result: ActionResult) => doneText(action, result),
    refresh: ['session-diff', 'sessions', 'session', 'branches', 'board'],
    onDone: ({ url }) => (url === undefined ? onClose() : setOpened(url)),
    onFailed: (error) => {
      setProblem(problemOf(error));
      return true;
    },
  });
  if (opened !== undefined) {
    return (
      <Dialog title="Pull request opened" onClose={onClose}>
        <p>
          <OutsideLink href={opened}>{opened}</OutsideLink>
        </p>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={`${titles[action]} – ${session.name}`}
      submitLabel={run.isPending ? 'Running' : titles[action]}
      busy={run.isPending}
      onSubmit={(form) => {
        setProblem(undefined);
        run.mutate(bodyOf(action, form));
      }}
      onClose={onClose}
    >
      <ActionFields action={action} name={session.name} base={base} />
      {session.status === 'working' && (action === 'commit' || isMove(action)) && (
        <Check label="The agent works now. Continue anyway" name="force" />
      )}
      {problem && <ProblemView problem={problem} />}
    </FormDialog>
  );
}

const isMove = (action: WorkAction) => action === 'merge' || action === 'rebase';

function ProblemView({ problem: { text, conflicts } }: { problem: Problem }) {
  return (
    <div role="alert" className="field-error">
      <p>{text}</p>
      {conflicts.length > 0 && (
        <ul aria-label="Conflicts" className="mono">
          {conflicts.map((path) => (
            <li key={path}>{path}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function problemOf(error: unknown): Problem {
  const { title, hint } = explain(error);
  const body = error instanceof ApiError ? (error.body as { conflicts?: unknown } | undefined) : {};
  const conflicts = Array.isArray(body?.conflicts) ? body.conflicts.map(String) : [];
  return { text: hint === undefined ? title : `${title} ${hint}`, conflicts };
}
