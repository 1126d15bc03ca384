# The image that brings epochd into Envoy's own: an initContainer runs `epochd install --to DIR` from it. It holds the executables,
# their library, and of a system only glibc: no shell, no package manager, nothing to update but by a rebuild.
#
#   docker build -t epochd .
#
# BUILD_IMAGE   Debian or Ubuntu (of the target's architecture). One that has the toolchain in /opt/epochd-tools already (what
#               tools/setup.py --compile makes) needs no network.
# BASE_IMAGE    scratch, or a base of glibc such as distroless/cc, where the system's parts are to come from there.
ARG BUILD_IMAGE=debian:12-slim
ARG BASE_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
ENV TOOLS_DIR=/opt/epochd-tools DENO_TLS_CA_STORE=system,mozilla
WORKDIR /src

# What changes least comes first: packages, toolchain, then the code.
RUN if [ ! -x "$TOOLS_DIR/bin/deno" ]; then \
      apt-get update && \
      apt-get install --yes --no-install-recommends ca-certificates libgcc-s1 python3 python3-pip && \
      rm -rf /var/lib/apt/lists/*; \
    fi
COPY tools/setup.py tools/
RUN if [ ! -x "$TOOLS_DIR/bin/deno" ]; then python3 tools/setup.py --compile --no-envoy; fi
COPY deno.json deno.lock main.ts probe.ts ./
COPY lib lib
COPY tools tools
RUN "$TOOLS_DIR/bin/deno" run --allow-all --quiet tools/image_root.ts /image

FROM ${BASE_IMAGE}
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/usr/local/lib/epochd/epochd"]
CMD ["--help"]
