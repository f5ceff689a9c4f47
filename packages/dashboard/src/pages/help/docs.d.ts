/** The address of a list of sections, made of docs/ by scripts/docs.mjs. */
declare module 'virtual:docs' {
  const address: string;
  export default address;
}
