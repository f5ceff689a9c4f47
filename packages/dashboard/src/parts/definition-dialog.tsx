import { ApiError } from '@millrace/client';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { authorizedFetch } from '../api/client.js';
import { useAction } from './action.js';
import { FormDialog } from './form-dialog.js';

interface DefinitionDialogProps {
  /** Such as `pipeline`. */
  kind: string;
  /** Below `/api/v1`, the page and the query, such as `pipelines`. */
  list: string;
  example: string;
  hint: ReactNode;
  onClose: () => void;
}

/** Creates a pipeline or a plan from YAML or JSON. */
export function DefinitionDialog({ kind, list, example, hint, onClose }: DefinitionDialogProps) {
  const [, navigate] = useLocation();
  const create = useAction({
    run: (text: string) => createFrom(`/api/v1/${list}`, text),
    done: ({ name, title }) => `Created ${name ?? title}.`,
    refresh: [list],
    onDone: ({ id }) => {
      onClose();
      navigate(`/${list}/${id}`);
    },
    // Shown in the form.
    onFailed: () => true,
  });
  return (
    <FormDialog
      wide
      title={`New ${kind}`}
      submitLabel={`Create ${kind}`}
      busy={create.isPending}
      error={create.error}
      onSubmit={(form) => create.mutate(String(form.get('text')))}
      onClose={onClose}
    >
      <label className="field">
        Definition
        <textarea name="text" className="mono" rows={14} required defaultValue={example} />
        <span className="field-hint">{hint}</span>
      </label>
    </FormDialog>
  );
}

interface Created {
  id: string;
  name?: string;
  title?: string;
}

/** Sends the text as it is: the daemon parses YAML, and JSON is YAML. */
async function createFrom(path: string, text: string): Promise<Created> {
  const response = await authorizedFetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/yaml' },
    body: text,
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, body);
  return body as Created;
}
