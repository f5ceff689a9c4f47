import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { count } from '../../parts/format.js';
import { importItems, parseImport, type ImportFailure } from './transfer.js';

interface ImportDialogProps {
  collection: string;
  onClose: () => void;
  onImported: () => void;
}

const shownFailures = 20;

/** Inserts the records of a file. */
export function ImportDialog({ collection, onClose, onImported }: ImportDialogProps) {
  const [file, setFile] = useState<File>();
  const [inserted, setInserted] = useState(0);
  const [failures, setFailures] = useState<readonly ImportFailure[]>([]);
  const run = useAction({
    run: async () => {
      const parsed = parseImport(await file!.text());
      const result = await importItems(collection, parsed.items, setInserted);
      return { ...result, failures: [...parsed.failures, ...result.failures] };
    },
    done: ({ inserted: size }) => `Inserted ${count(size)} records.`,
    refresh: ['db-status'],
    onDone: (result) => {
      setFailures(result.failures);
      onImported();
      if (result.failures.length === 0) onClose();
    },
  });
  return (
    <Dialog
      title={`Import into ${collection}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button className="primary" disabled={!file} action={run}>
            {run.isPending ? `Inserted ${count(inserted)}` : 'Import'}
          </Button>
        </>
      }
    >
      <label className="field">
        File
        <input
          type="file"
          accept=".jsonl,.ndjson,.json,.csv"
          onChange={(event) => {
            setFile(event.target.files?.[0]);
            setFailures([]);
          }}
        />
        <span className="field-hint">
          JSON lines, a JSON array or CSV: records of an export, or documents. Each is inserted; a
          key that exists is an error.
        </span>
      </label>
      {failures.length > 0 && (
        <div role="alert" className="stack">
          <p className="field-error">{count(failures.length)} not inserted:</p>
          <ul className="db-failures">
            {failures.slice(0, shownFailures).map(({ line, message }) => (
              <li key={line}>
                Line {line}: {message}
              </li>
            ))}
          </ul>
        </div>
      )}
    </Dialog>
  );
}
