import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { queries } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { Check, Field, SelectField } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { dollars } from '../../parts/format.js';
import { newIdempotencyKey } from '../../parts/idempotency-key.js';
import { spawn } from '../../sessions/actions.js';

type SpawnRequest = DaemonSchema<'SpawnRequest'>;
type Verdict = DaemonSchema<'BudgetVerdict'>;

/** Starts an agent; needs a second confirmation over budget. */
export function SpawnDialog({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation();
  const [key] = useState(() => newIdempotencyKey());
  const [verdict, setVerdict] = useState<Verdict>();
  const start = useAction({
    run: (request: SpawnRequest) => spawn(request, key),
    done: ({ name }) => `Started ${name}.`,
    refresh: ['sessions'],
    onDone: ({ id }) => {
      onClose();
      navigate(`/agents/${id}`);
    },
    onFailed: (error) => {
      if (isOverBudget(error)) setVerdict((error.body as { verdict: Verdict }).verdict);
      // Shown in the form.
      return true;
    },
  });
  return (
    <FormDialog
      wide
      title="New agent"
      submitLabel={verdict ? 'Start over budget' : 'Start agent'}
      dangerous={verdict !== undefined}
      busy={start.isPending}
      error={isOverBudget(start.error) ? undefined : start.error}
      onSubmit={(form) => start.mutate(requestOf(form, verdict !== undefined))}
      onClose={onClose}
    >
      <SpawnFields />
      {verdict && <OverBudget verdict={verdict} />}
    </FormDialog>
  );
}

const isOverBudget = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 428;

function OverBudget({ verdict }: { verdict: Verdict }) {
  return (
    <div role="alert" className="state state-failure">
      <p className="state-title">{verdict.reason}</p>
      <p className="state-hint">
        Today {dollars(verdict.daily_usd)} of {capText(verdict.cap_daily)}, last 7 days{' '}
        {dollars(verdict.weekly_usd)} of {capText(verdict.cap_weekly)}.
      </p>
    </div>
  );
}

function capText(cap: number | null): string {
  return cap ? dollars(cap) : 'no cap';
}

function SpawnFields() {
  const { data: registry } = useQuery(queries.registry());
  const usable = registry?.backends.filter(
    ({ installed, enabled, is_local }) => installed && enabled && !is_local,
  );
  const standard = usable?.find((row) => row.default);
  return (
    <>
      <Field label="Prompt" name="prompt" rows={5} required autoFocus />
      {usable?.length === 0 && (
        <p className="field-error">
          No backend is installed and enabled. Install one, then rescan under Backends &amp; usage.
        </p>
      )}
      <div className="fields">
        <SelectField
          label="Backend"
          name="backend"
          defaultValue=""
          options={{
            '': standard ? `Default (${standard.id})` : 'Default (not set)',
            ...Object.fromEntries(usable?.map(({ id }) => [id, id]) ?? []),
          }}
        />
        <Field label="Name" name="name" maxLength={128} placeholder="Generated from the prompt" />
        <Field label="Repository" name="repo" placeholder="The daemon's directory" />
        <Field label="Branch" name="branch" placeholder="Creates a worktree" />
        <Field label="Model" name="model" placeholder="Default of the backend" />
        <SelectField
          label="Driver"
          name="driver"
          defaultValue=""
          options={{
            '': 'tmux if installed',
            tmux: 'tmux: interactive',
            headless: 'headless: one run',
            acp: 'acp: over the Agent Client Protocol',
          }}
        />
      </div>
      <Check label="Restart automatically after an error" name="auto_restart" />
    </>
  );
}

function requestOf(form: FormData, force: boolean): SpawnRequest {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const request: Record<string, unknown> = { prompt: text('prompt') };
  for (const name of ['backend', 'name', 'repo', 'branch', 'model', 'driver']) {
    if (text(name) !== '') request[name] = text(name);
  }
  if (form.get('auto_restart')) request['auto_restart'] = true;
  if (force) request['force'] = true;
  return request as SpawnRequest;
}
