// Owns: which role a client certificate has: `operate:URI:spiffe://...`, `admin:CN=alice,O=ops`. Must not: read certificates.

export const roles = ["read", "operate", "admin"] as const;
/** Each may do what those before it may. `read`: look. `operate`: new epochs. `admin`: the configuration. */
export type Role = typeof roles[number];

export function mayDo(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** What is read of a verified certificate. */
export interface CertificateNames {
  /** `CN=alice`, `O=ops`, each part of the subject. */
  readonly subject: readonly string[];
  /** `DNS:...`, `URI:...`, `EMAIL:...`. */
  readonly alternatives: readonly string[];
}

export interface ClientRole {
  readonly role: Role;
  /** One alternative name, or parts of the subject that must all be there. */
  readonly match: { readonly alternative: string } | { readonly subject: readonly string[] };
  readonly text: string;
}

export const clientRoleExamples =
  "`ROLE:NAME` such as operate:URI:spiffe://cluster/ns/ci, read:DNS:metrics.example or admin:CN=alice,O=ops";

export function parseClientRole(text: string): ClientRole | undefined {
  const colon = text.indexOf(":");
  const role = roles.find((known) => known === text.slice(0, colon));
  const name = text.slice(colon + 1);
  if (role === undefined || colon < 0 || name === "") return undefined;
  if (/^(?:DNS|URI|EMAIL):./.test(name)) return { role, match: { alternative: name }, text };
  const subject = name.split(",").map((part) => part.trim());
  return subject.every((part) => /^(?:CN|O|OU)=./.test(part)) ? { role, match: { subject }, text } : undefined;
}

/** The highest role that a certificate has; undefined: it is known to nobody. */
export function roleOf(names: CertificateNames, rules: readonly ClientRole[]): Role | undefined {
  const held = rules.filter(({ match }) =>
    "alternative" in match
      ? names.alternatives.includes(match.alternative)
      : match.subject.every((part) => names.subject.includes(part))
  );
  return roles.findLast((role) => held.some((rule) => rule.role === role));
}
