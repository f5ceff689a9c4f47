import { Time } from '../../parts/time.js';
import type { DbRecord } from './api.js';
import { dataText, differing } from './data.js';

interface ConflictProps {
  theirs: DbRecord;
  /** The text in the editor. */
  mine: string;
  onTakeTheirs: () => void;
  onKeepMine: () => void;
}

/** Somebody else wrote first: what they wrote, and the two ways on. */
export function Conflict({ theirs, mine, onTakeTheirs, onKeepMine }: ConflictProps) {
  const names = differing(theirs.data, mine);
  return (
    <div className="db-conflict stack" role="alert">
      <p>
        <strong>Somebody else changed this record</strong> <Time at={theirs.updated_at} />: it is at
        revision {theirs.rev} now, so yours was not saved.
        {names.length > 0 && ` You differ in ${names.join(', ')}.`}
      </p>
      <details open>
        <summary>Theirs</summary>
        <pre className="db-theirs" tabIndex={0}>
          {dataText(theirs.data)}
        </pre>
      </details>
      <div className="row">
        <button type="button" onClick={onTakeTheirs}>
          Take theirs
        </button>
        <button type="button" onClick={onKeepMine}>
          Keep mine, on top of theirs
        </button>
      </div>
    </div>
  );
}
