import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Client } from 'minio';
import type { Config } from '../../config/index.ts';
import { escapeHtml } from '../../lib/escape-html.ts';
import { hasCode } from './s3-client.ts';

/**
 * The access that a bucket must grant, and no more: everyone reads uploads/*, pages of allowed origins PUT files to
 * presigned addresses.
 */
export interface BucketSetting {
  name: 'policy' | 'CORS';
  /** The current settings: statements of a policy, or rules. May be empty. */
  read(): Promise<Entry[]>;
  /** A line for each difference between the current and the required settings; empty if nothing must change. */
  differences(entries: Entry[]): string[];
  /** The current settings with these differences applied; entries of others stay. */
  wanted(entries: Entry[]): Entry[];
  /** The JSON for `aws s3api put-bucket-…`. */
  document(entries: Entry[]): object;
  write(entries: Entry[]): Promise<void>;
}

/** A statement or a rule, with S3's field names. */
export type Entry = Record<string, unknown>;

interface Wanted {
  bucket: string;
  origins: Config['origins'];
}

export const bucketSettings = (minio: Client, wanted: Wanted): BucketSetting[] => [
  policyOf(minio, wanted),
  corsOf(minio, wanted),
];

/** True if a storage does not implement this setting. */
export const isNotImplemented = (error: unknown): boolean => hasCode(error, ['NotImplemented', 'MethodNotAllowed']);

function policyOf(minio: Client, { bucket }: Wanted): BucketSetting {
  const reading = {
    Effect: 'Allow',
    Principal: { AWS: ['*'] },
    Action: ['s3:GetObject'],
    Resource: [`arn:aws:s3:::${bucket}/uploads/*`],
  };
  const isReading = ({ Action, Resource, NotAction, NotResource }: Entry) =>
    [NotAction, NotResource].every((field) => field === undefined) &&
    String(listOf(Action)) === String(reading.Action) &&
    String(listOf(Resource)) === String(reading.Resource);
  const differences = (statements: Entry[]) => {
    const forEveryone = statements.filter(isForEveryone);
    return [
      ...(forEveryone.some(isReading) ? [] : ['+ everyone may read uploads/*']),
      ...forEveryone.filter((statement) => !isReading(statement)).map((statement) => `- ${JSON.stringify(statement)}`),
    ];
  };
  const document = (Statement: Entry[]) => ({ Version: '2012-10-17', Statement });
  return {
    name: 'policy',
    read: () =>
      orNothing('NoSuchBucketPolicy', async () =>
        listOf((JSON.parse(await minio.getBucketPolicy(bucket)) as { Statement?: Entry | Entry[] }).Statement),
      ),
    differences,
    wanted: (statements) => [...statements.filter((statement) => !isForEveryone(statement)), reading],
    document,
    write: (statements) => minio.setBucketPolicy(bucket, JSON.stringify(document(statements))),
  };
}

/** A statement with a condition, such as a private network, is left to the operator. */
function isForEveryone({ Effect, Principal, Condition }: Entry): boolean {
  const principals = isEntry(Principal) ? Principal['AWS'] : Principal;
  return Effect === 'Allow' && Condition === undefined && listOf(principals).includes('*');
}

const METHOD = 'PUT';
/** The only header of a presigned address that needs a CORS preflight. */
const HEADER = 'content-type';

function corsOf(minio: Client, { bucket, origins }: Wanted): BucketSetting {
  const ours = { AllowedOrigins: [...origins], AllowedMethods: [METHOD], AllowedHeaders: [HEADER] };
  const request = { bucketName: bucket, query: 'cors' };
  return {
    name: 'CORS',
    read: () =>
      orNothing('NoSuchCORSConfiguration', async () =>
        rulesIn(await text(await minio.makeRequestAsync({ ...request, method: 'GET' }))),
      ),
    differences: (rules) => {
      const former = rules.filter(isOurs).flatMap(({ AllowedOrigins }) => listOf(AllowedOrigins).map(String));
      return [
        ...[...origins]
          .filter((origin) => !rules.some((rule) => lets(rule, origin)))
          .map((origin) => `+ ${pagesOf(origin)}`),
        ...former.filter((origin) => !origins.has(origin)).map((origin) => `- ${pagesOf(origin)}`),
      ];
    },
    wanted: (rules) => [...rules.filter((rule) => !isOurs(rule)), ours],
    document: (rules) => ({ CORSRules: rules }),
    async write(rules) {
      const body = corsConfiguration(rules);
      const headers = { 'Content-MD5': createHash('md5').update(body).digest('base64') };
      await minio.makeRequestAsyncOmit({ ...request, method: 'PUT', headers }, body);
    },
  };
}

const pagesOf = (origin: string) => `pages of ${origin} may send files`;

/** True for a rule written by this service, perhaps with former origins. */
const isOurs = ({ AllowedMethods, AllowedHeaders }: Entry): boolean =>
  String(listOf(AllowedMethods)) === METHOD && String(listOf(AllowedHeaders)).toLowerCase() === HEADER;

const lets = ({ AllowedOrigins, AllowedMethods, AllowedHeaders }: Entry, origin: string): boolean =>
  listOf(AllowedMethods).includes(METHOD) &&
  listOf(AllowedOrigins).some((pattern) => matchesPattern(String(pattern), origin)) &&
  listOf(AllowedHeaders).some((pattern) => matchesPattern(String(pattern).toLowerCase(), HEADER));

/** Patterns have at most one `*`, as in S3. */
function matchesPattern(pattern: string, value: string): boolean {
  const [start = '', end] = pattern.split('*');
  if (end === undefined) return value === pattern;
  return value.length >= start.length + end.length && value.startsWith(start) && value.endsWith(end);
}

/** The fields of a rule: in XML, in JSON, and whether they are lists. */
const ruleFields = [
  ['ID', 'ID', false],
  ['AllowedOrigin', 'AllowedOrigins', true],
  ['AllowedMethod', 'AllowedMethods', true],
  ['AllowedHeader', 'AllowedHeaders', true],
  ['ExposeHeader', 'ExposeHeaders', true],
  ['MaxAgeSeconds', 'MaxAgeSeconds', false],
] as const;

const rulesIn = (xml: string): Entry[] =>
  [...xml.matchAll(/<CORSRule>(.*?)<\/CORSRule>/gs)].map(([, rule = '']) =>
    Object.fromEntries(
      ruleFields.flatMap(([tag, name, isList]): [string, unknown][] => {
        const values = [...rule.matchAll(new RegExp(`<${tag}>([^<]*)</${tag}>`, 'g'))].map(([, value = '']) =>
          unescapeXml(value),
        );
        return values.length > 0 ? [[name, isList ? values : values[0]]] : [];
      }),
    ),
  );

function corsConfiguration(rules: Entry[]): string {
  const ruleOf = (rule: Entry) =>
    ruleFields
      .flatMap(([tag, name]) => listOf(rule[name]).map((value) => `<${tag}>${escapeHtml(String(value))}</${tag}>`))
      .join('');
  const content = rules.map((rule) => `<CORSRule>${ruleOf(rule)}</CORSRule>`).join('');
  return `<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</CORSConfiguration>`;
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const unescapeXml = (text: string): string =>
  text.replace(/&(?:#x([\da-f]{1,6})|#(\d{1,7})|(\w+));/gi, (reference, hex, decimal, name: string) => {
    if (name) return entities[name] ?? reference;
    return String.fromCodePoint(hex ? Number.parseInt(hex, 16) : Number(decimal));
  });

const orNothing = (code: string, read: () => Promise<Entry[]>): Promise<Entry[]> =>
  read().catch((error: unknown) => (hasCode(error, [code]) ? [] : Promise.reject(error)));

const isEntry = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** S3 writes a list of one as a single value. */
const listOf = <T>(value: T | T[] | undefined): T[] => (value === undefined ? [] : ([value].flat() as T[]));
