const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const mailAddress = new RegExp(
  `^[a-z0-9!#$%&'*+/=?^_{|}~-]+(?:\\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@(?:${label}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$`,
  'i',
);

/** One ASCII address. RFC 5321 4.5.3.1: 64 octets before the @, 254 in all. */
export const isMailAddress = (value: string) =>
  value.length <= 254 && value.indexOf('@') <= 64 && mailAddress.test(value);
