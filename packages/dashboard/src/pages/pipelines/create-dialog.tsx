import { useState } from 'react';
import { useLocation } from 'wouter';
import { call, daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { explain } from '../../parts/states.js';

const example = `name: Release check
jobs:
  - id: test
    prompt: Run the tests and mend what fails.
  - id: review
    prompt: Review the change.
    depends_on: [test]
`;

/** A pipeline from YAML or JSON. */
export function CreateDialog({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<string>();
  const create = useAction({
    run: (text: string) =>
      call(
        daemon.POST('/api/v1/pipelines', {
          headers: { 'content-type': 'application/yaml' },
          // The text goes as it is: YAML, of which JSON is a part.
          body: text as never,
          bodySerializer: (body) => body as unknown as string,
        }),
      ),
    done: ({ name }) => `Created ${name}.`,
    refresh: ['pipelines'],
    onDone: ({ id }) => {
      onClose();
      navigate(`/pipelines/${id}`);
    },
    onRefused: (error) => {
      setProblem(explain(error).title);
      return true;
    },
  });
  return (
    <Dialog title="New pipeline" onClose={onClose} wide>
      <form
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
            YAML or JSON. With <code>start: false</code> it waits to be started.
          </span>
        </label>
        {problem && (
          <p role="alert" className="field-error">
            {problem}
          </p>
        )}
        <div className="row">
          <button type="submit" className="primary" disabled={create.isPending}>
            Create pipeline
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
