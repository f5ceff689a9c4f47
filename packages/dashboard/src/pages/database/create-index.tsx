import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Check, FormError } from '../../parts/controls.js';
import { explain } from '../../parts/states.js';
import { createIndex, type IndexStatus } from './api.js';

type Definition = Parameters<typeof createIndex>[1];

/** Creates an index and says whether it is new. The page shows its state while it is built. */
export function useCreateIndex(collection: string, onDone?: () => void) {
  return useAction({
    run: (definition: Definition) => createIndex(collection, definition),
    done: ({ seq }, { fields = [] }) =>
      seq === 0
        ? `The index ${fields.join(', ')} exists already.`
        : `Created the index ${fields.join(', ')}.`,
    refresh: ['db-status', 'db-advice'],
    ...(onDone && { onDone }),
  });
}

interface CreateIndexProps {
  collection: string;
  indexes: readonly IndexStatus[];
}

/** A form for a new index. */
export function CreateIndex({ collection, indexes }: CreateIndexProps) {
  const [text, setText] = useState('');
  const [unique, setUnique] = useState(false);
  const [sparse, setSparse] = useState(false);
  const create = useCreateIndex(collection, () => setText(''));
  const fields = text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
  const isKnown = indexes.some(
    (one) => one.name === fields.join(',') && one.unique === unique && one.sparse === sparse,
  );
  const problem = isKnown
    ? `The index ${fields.join(', ')} exists already.`
    : create.error && explain(create.error).title;
  return (
    <form
      className="panel-body stack"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ fields, unique, sparse });
      }}
    >
      <div className="row">
        <input
          aria-label="Fields of the new index"
          aria-invalid={Boolean(problem)}
          placeholder="city, age"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            create.reset();
          }}
        />
        <Check label="Unique" checked={unique} onChange={setUnique} />
        <Check
          label="Sparse"
          title="Leave out records without the fields"
          checked={sparse}
          onChange={setSparse}
        />
        <button type="submit" disabled={fields.length === 0 || isKnown || create.isDisabled}>
          Create index
        </button>
      </div>
      <FormError>{problem}</FormError>
    </form>
  );
}
