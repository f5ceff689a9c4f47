/** The authenticated caller of a request. */
export interface Caller {
  /** For the access log. */
  name: string;
  access: 'full' | 'read_only';
}
