import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { useId, useState } from 'react';
import { useLocation } from 'wouter';
import { authorizedFetch } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { explain } from '../../parts/states.js';

const example = `name: Release check
jobs:
  - id: test
    prompt: Run the tests and fix what fails.
  - id: review
    prompt: Review the change.
    depends_on: [test]
`;

/** Creates a pipeline from YAML or JSON. */
export function CreateDialog({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation();
  const form = useId();
  const [problem, setProblem] = useState<string>();
  const create = useAction({
    run: createPipeline,
    done: ({ name }) => `Created ${name}.`,
    refresh: ['pipelines'],
    onDone: ({ id }) => {
      onClose();
      navigate(`/pipelines/${id}`);
    },
    onFailed: (error) => {
      setProblem(explain(error).title);
      return true;
    },
  });
  return (
    <Dialog
      title="New pipeline"
      onClose={onClose}
      wide
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form={form} className="primary" disabled={create.isPending}>
            Create pipeline
          </button>
        </>
      }
    >
      <form
        id={form}
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setProblem(undefined);
          create.mutate(String(new FormData(event.currentTarget).get('text')));
        }}
      >
        <label className="field">
          Definition
          <textarea name="text" className="mono" rows={14} required defaultValue={example} />
          <span className="field-hint">
            YAML or JSON. With <code>start: false</code> it does not start on its own.
          </span>
        </label>
        {problem && (
          <p role="alert" className="field-error">
            {problem}
          </p>
        )}
      </form>
    </Dialog>
  );
}

/** Sends the text as it is: the daemon parses YAML, and JSON is YAML. */
async function createPipeline(text: string): Promise<DaemonSchema<'Pipeline'>> {
  const response = await authorizedFetch('/api/v1/pipelines', {
    method: 'POST',
    headers: { 'content-type': 'application/yaml' },
    body: text,
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, body);
  return body as DaemonSchema<'Pipeline'>;
}
