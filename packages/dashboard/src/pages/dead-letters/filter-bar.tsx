import type { Filter } from '../../queue/api.js';
import { Button, Field, SelectField } from '../../parts/controls.js';
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
  const any = (label: string, name: 'error_type' | 'handler_ref', choices: readonly string[]) => {
    const value = filter[name] ?? '';
    const all = new Set([...(value === '' ? [] : [value]), ...choices]);
    return (
      <SelectField
        label={label}
        value={value}
        options={{ '': 'any', ...Object.fromEntries([...all].map((one) => [one, one])) }}
        onChange={(text) => set(name, text)}
      />
    );
  };
  return (
    <div className="dead-filter" role="group" aria-label="Filter">
      {any('Error', 'error_type', errorTypes)}
      {any('Handler', 'handler_ref', handlers)}
      <Field
        label="HTTP status"
        type="number"
        min={100}
        max={599}
        placeholder="any"
        value={filter.http_status ?? ''}
        onChange={(text) => set('http_status', text)}
      />
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
      <Button disabled={Object.keys(filter).length === 0} onClick={() => onFilter({})}>
        Clear
      </Button>
    </div>
  );
}
