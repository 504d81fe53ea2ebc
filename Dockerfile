# An image that answers the first hard question in seconds: compiled code for each level of x86-64 that the building
# machine can run is a layer of it. Build:  docker build -t powersum .
# Use:  docker run --rm -v "$PWD:/data:ro" powersum solve /data/model.uai --max all
FROM python:3.12-slim AS build
WORKDIR /source
RUN pip install --no-cache-dir build setuptools
COPY pyproject.toml README.md LICENSE ./
COPY src src
# Its dependencies, so that code is compiled with the versions that the image has.
RUN pip install --no-cache-dir .
COPY release release
RUN python -m release.wheel --out /wheels && rm /wheels/*-py3-none-any.whl && pip freeze --exclude powersum > /wheels/versions.txt

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /wheels/versions.txt /wheels/*.whl && rm -r /wheels
# What the image does not bring is compiled once for each container, or once for all where a volume is mounted here.
RUN install -d -o nobody /var/cache/powersum
ENV POWERSUM_CACHE_DIR=/var/cache/powersum
USER nobody
WORKDIR /data
ENTRYPOINT ["powersum"]
