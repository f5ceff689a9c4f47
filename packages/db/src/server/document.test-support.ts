import fc from 'fast-check';

/** Values that a document may have: no field is called `__proto__`. */
export const documentValue = fc
  .jsonValue()
  .filter((value) => !JSON.stringify(value).includes('__proto__'));
