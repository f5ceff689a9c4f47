import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { queries } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
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
      <label className="field">
        Prompt
        <textarea name="prompt" rows={5} required autoFocus />
      </label>
      {usable?.length === 0 && (
        <p className="field-error">
          No backend is installed and enabled. Install one, then rescan under Backends &amp; usage.
        </p>
      )}
      <div className="fields">
        <label className="field">
          Backend
          <select name="backend" defaultValue="">
            <option value="">{standard ? `Default (${standard.id})` : 'Default (not set)'}</option>
            {usable?.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          Name
          <input name="name" maxLength={128} placeholder="Generated from the prompt" />
        </label>
        <label className="field">
          Repository
          <input name="repo" placeholder="The daemon's directory" />
        </label>
        <label className="field">
          Branch
          <input name="branch" placeholder="Creates a worktree" />
        </label>
        <label className="field">
          Model
          <input name="model" placeholder="Default of the backend" />
        </label>
        <label className="field">
          Driver
          <select name="driver" defaultValue="">
            <option value="">tmux if installed</option>
            <option value="tmux">tmux: interactive</option>
            <option value="headless">headless: one run</option>
            <option value="acp">acp: over the Agent Client Protocol</option>
          </select>
        </label>
      </div>
      <label className="check">
        <input type="checkbox" name="auto_restart" />
        Restart automatically after an error
      </label>
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
