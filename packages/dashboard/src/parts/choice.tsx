interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  options: readonly { value: Value; text: string }[];
  onChange: (value: Value) => void;
  /** Looks like tabs, for the views of a page. */
  isTabs?: boolean;
}

/** A row of buttons of which one is selected. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  onChange,
  isTabs = false,
}: ChoiceProps<Value>) {
  return (
    <div className={isTabs ? 'tabs' : 'chips'} role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          className={isTabs ? 'tab' : 'chip'}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}
