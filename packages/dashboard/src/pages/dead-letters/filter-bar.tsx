import type { Filter } from '../../queue/api.js';
import { localOf, timestampOf } from '../../parts/local-time.js';
import { withField } from './filter.js';

interface FilterBarProps {
  filter: Filter;
  errorTypes: readonly string[];
  handlers: readonly string[];
  /** Whether it filters by time, which groups have not. */
  hasTimes?: boolean;
  onFilter: (filter: Filter) => void;
}

/** Filters the list; redrive and purge act on the same filter. */
export function FilterBar({
  filter,
  errorTypes,
  handlers,
  hasTimes = true,
  onFilter,
}: FilterBarProps) {
  const set = (name: keyof Filter, text: string) => onFilter(withField(filter, name, text));
  return (
    <div className="dead-filter" role="group" aria-label="Filter">
      <Choice
        label="Error"
        value={filter.error_type}
        choices={errorTypes}
        onChoose={(text) => set('error_type', text)}
      />
      <Choice
        label="Handler"
        value={filter.handler_ref}
        choices={handlers}
        onChoose={(text) => set('handler_ref', text)}
      />
      <label className="field">
        HTTP status
        <input
          type="number"
          min={100}
          max={599}
          placeholder="any"
          value={filter.http_status ?? ''}
          onChange={(event) => set('http_status', event.target.value)}
        />
      </label>
      {hasTimes && <Times filter={filter} onSet={set} />}
      <button
        type="button"
        disabled={Object.keys(filter).length === 0}
        onClick={() => onFilter({})}
      >
        Clear
      </button>
    </div>
  );
}

interface TimesProps {
  filter: Filter;
  onSet: (name: 'from' | 'to', text: string) => void;
}

function Times({ filter, onSet }: TimesProps) {
  return (
    <>
      <label className="field">
        Dead since
        <input
          type="datetime-local"
          value={localOf(filter.from)}
          onChange={(event) => onSet('from', timestampOf(event.target.value))}
        />
      </label>
      <label className="field">
        Dead before
        <input
          type="datetime-local"
          value={localOf(filter.to)}
          onChange={(event) => onSet('to', timestampOf(event.target.value))}
        />
      </label>
    </>
  );
}

interface ChoiceProps {
  label: string;
  value: string | undefined;
  choices: readonly string[];
  onChoose: (text: string) => void;
}

function Choice({ label, value, choices, onChoose }: ChoiceProps) {
  const all = value === undefined || choices.includes(value) ? choices : [value, ...choices];
  return (
    <label className="field">
      {label}
      <select value={value ?? ''} onChange={(event) => onChoose(event.target.value)}>
        <option value="">any</option>
        {all.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    </label>
  );
}
