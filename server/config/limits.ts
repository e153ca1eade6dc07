import type { z } from 'zod';
import { optionalRate, rate } from './values.ts';

/** Rates of operations that cost resources, or that attackers repeat. */
const limits = {
  login: rate(5, 15 * 60),
  account: rate(100, 60 * 60),
  device: rate(10, 15 * 60),
  code: rate(10, 60 * 60),
  register: rate(100, 15 * 60),
  mail: rate(10, 60 * 60),
  inbox: rate(30, 60 * 60),
  mailRequest: rate(100, 60 * 60),
  token: rate(50, 15 * 60),
  upload: rate(120, 60 * 60),
  uploadCheck: rate(600, 60 * 60),
  uploadParts: rate(6000, 60 * 60),
  export: rate(10, 60 * 60),
  change: rate(10, 60 * 60),
  administration: rate(100, 60 * 60),
  idpStart: rate(100, 15 * 60),
  authorizationStart: rate(300, 15 * 60),
  directStart: rate(300, 15 * 60),
  refresh: rate(120, 60 * 60),
  passkeyStart: rate(100, 15 * 60),
  totpStart: rate(20, 60 * 60),
  uniqueField: rate(20, 60 * 60),
  read: optionalRate,
  flood: rate(1000, 15 * 60),
};
type Limits = typeof limits;
export type LimitName = keyof Limits;
const names = Object.keys(limits) as LimitName[];

/** `mailRequest` is `LIMIT_MAIL_REQUEST`. */
type VariableOf<Name extends string> = `LIMIT_${Uppercase<SnakeCase<Name>>}`;
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${First}`}${SnakeCase<Rest>}`
  : Name;
export const variableOf = <Name extends LimitName>(name: Name) =>
  `LIMIT_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}` as VariableOf<Name>;

/** The limits by the names of their variables. */
export const limitVariables = Object.fromEntries(names.map((name) => [variableOf(name), limits[name]])) as {
  [Name in LimitName as VariableOf<Name>]: Limits[Name];
};

export const ratesOf = (env: z.output<z.ZodObject<typeof limitVariables>>) =>
  Object.fromEntries(names.map((name) => [name, env[variableOf(name)]])) as {
    [Name in LimitName]: z.output<Limits[Name]>;
  };
