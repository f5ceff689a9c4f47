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
          <label key={name} className="check">
            <input
              type="checkbox"
              checked={shown.includes(name)}
              onChange={(event) =>
                onChange(
                  event.target.checked ? [...shown, name] : shown.filter((one) => one !== name),
                )
              }
            />
            {name}
          </label>
        ))}
        <button type="button" className="small" onClick={() => onChange([])}>
          Most frequent
        </button>
      </div>
    </details>
  );
}
