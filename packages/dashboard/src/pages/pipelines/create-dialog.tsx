import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { useLocation } from 'wouter';
import { authorizedFetch } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';

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
  const create = useAction({
    run: createPipeline,
    done: ({ name }) => `Created ${name}.`,
    refresh: ['pipelines'],
    onDone: ({ id }) => {
      onClose();
      navigate(`/pipelines/${id}`);
    },
    // Shown in the form.
    onFailed: () => true,
  });
  return (
    <FormDialog
      wide
      title="New pipeline"
      submitLabel="Create pipeline"
      busy={create.isPending}
      error={create.error}
      onSubmit={(form) => create.mutate(String(form.get('text')))}
      onClose={onClose}
    >
      <label className="field">
        Definition
        <textarea name="text" className="mono" rows={14} required defaultValue={example} />
        <span className="field-hint">
          YAML or JSON. With <code>start: false</code> it does not start on its own.
        </span>
      </label>
    </FormDialog>
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
