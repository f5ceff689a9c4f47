import { toast } from './toast.js';

/** Number of characters at the end that are always shown: ids of one second begin alike. */
const tail = 6;

/** An id that is cut in the middle where there is no room. */
export function Id({ value }: { value: string }) {
  return (
    <span className="id" title={value}>
      <span className="id-head">{value.slice(0, -tail)}</span>
      <span className="id-tail">{value.slice(-tail)}</span>
    </span>
  );
}

/** Copies a text, such as an id. */
export function Copy({ text, name }: { text: string; name: string }) {
  return (
    <button
      type="button"
      className="small plain"
      aria-label={`Copy ${name}`}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(
          () => toast('good', `Copied ${name}.`),
          () => toast('bad', `The browser does not allow copying. The ${name} is ${text}.`),
        );
      }}
    >
      Copy
    </button>
  );
}
