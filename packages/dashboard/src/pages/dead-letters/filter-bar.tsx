import type { Filter } from '../../queue/api.js';
import { TimeField } from '../../parts/time-field.js';
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
      {hasTimes && (
        <>
          <TimeField
            label="Dead since"
            value={filter.from}
            onChange={(text) => set('from', text)}
          />
          <TimeField label="Dead before" value={filter.to} onChange={(text) => set('to', text)} />
        </>
      )}
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
