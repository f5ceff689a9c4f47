import { Button, Check } from '../../parts/controls.js';

interface ColumnChoiceProps {
  names: readonly string[];
  shown: readonly string[];
  /** An empty list returns to the columns by frequency. */
  onChange: (shown: readonly string[]) => void;
}

/** Chooses which fields are columns. */
export function ColumnChoice({ names, shown, onChange }: ColumnChoiceProps) {
  const all = [...new Set([...shown, ...names])];
  return (
    <details className="db-column-choice">
      <summary>Columns</summary>
      <div className="panel panel-body stack" role="group" aria-label="Columns">
        {all.map((name) => (
          <Check
            key={name}
            label={name}
            checked={shown.includes(name)}
            onChange={(isShown) =>
              onChange(isShown ? [...shown, name] : shown.filter((one) => one !== name))
            }
          />
        ))}
        <Button className="small" onClick={() => onChange([])}>
          Most frequent
        </Button>
      </div>
    </details>
  );
}
